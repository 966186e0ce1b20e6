// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "config/check/check.h"
#include "config/sources.h"
#include "config/values.h"
#include "warpline/base/nearest.h"

namespace warpline::config {
namespace {

/// Default CTAs of a persistent kernel: one for each burst that a ring of the default size holds.

struct CommandLine {
  Command command = Command::forward;  ///< whose options follow
  Task task = Task::run;
  std::string bench;     ///< which one
  std::string key_task;  ///< of message key
  Role role = Role::server;
  std::vector<std::string> options;
};

Result<Command> parse_command(const std::string& text, const std::vector<std::string>& known) {
  for (const Command command : kCommands) {
    if (text == name(command) && std::ranges::find(known, text) != known.end()) return command;
  }
  return usage_error(fmt::format("unknown command '{}'", text), fmt::format("there are {}", fmt::join(known, ", ")),
                     fmt::format("did you mean {}?", nearest(text, known)));
}

/// "message server, message client and message key"
std::string enumerated(std::string_view command, std::span<const std::string> words) {
  std::string text = fmt::format("{} {}", command, words.front());
  for (std::size_t i = 1; i < words.size(); ++i) {
    text += fmt::format("{} {} {}", i + 1 == words.size() ? " and" : ",", command, words[i]);
  }
  return text;
}

Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return usage_error("no command is given", "warpline has several",
                       "choose forward, l3forward, ingest, generate, message, stream, bench, report, config, doctor, "
                       "selftest, ctl, top, capture, trace or setup; "
                       "--help explains");
  }
  std::vector<std::string> known;
  for (const Command command : kCommands) {
    if (command != Command::message_key) known.emplace_back(name(command));  // it is named by two words
  }
  CommandLine line;
  WARPLINE_TRY(line.command, parse_command(arguments[0], known));
  std::size_t next = 1;
  if (line.command == Command::config) {
    const std::string task = next < arguments.size() ? arguments[next++] : "";
    if (task.empty() || task[0] == '-') {
      return usage_error("cannot run config", "it is not said what to do", "write config show or config check");
    }
    if (task != "show" && task != "check") {
      return usage_error(
          fmt::format("unknown command 'config {}'", task), "there are config show and config check",
          fmt::format("did you mean config {}?", nearest(task, std::vector<std::string>{"show", "check"})));
    }
    line.task = task == "show" ? Task::show : Task::check;
    line.command = Command::forward;
    if (next < arguments.size() && !arguments[next].starts_with('-')) {
      WARPLINE_TRY(line.command, parse_command(arguments[next++],
                                               {"forward", "l3forward", "ingest", "generate", "message", "stream"}));
    }
  }
  if (line.command == Command::message && line.task == Task::run && next < arguments.size() &&
      arguments[next] == "key") {
    line.command = Command::message_key;
    ++next;
    line.key_task = next < arguments.size() ? arguments[next++] : "";
    const std::vector<std::string> tasks(std::begin(kKeyTasks), std::end(kKeyTasks));
    if (std::ranges::find(tasks, line.key_task) == tasks.end()) {
      const bool missing = line.key_task.empty() || line.key_task[0] == '-';
      return usage_error(
          missing ? "cannot run message key" : fmt::format("unknown command 'message key {}'", line.key_task),
          "there are message key new and message key show",
          fmt::format("did you mean message key {}?", missing ? tasks.front() : nearest(line.key_task, tasks)));
    }
  }
  if (const std::span<const Role> roles = roles_of(line.command); !roles.empty()) {
    const std::string_view command = name(line.command);
    std::vector<std::string> names;
    for (const Role role : roles) names.emplace_back(name(role));
    if (line.command == Command::message && line.task == Task::run) names.emplace_back("key");
    const bool given = next < arguments.size() && !arguments[next].starts_with('-');
    const std::string text = given ? arguments[next++] : line.task == Task::run ? "" : names.front();
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) {
      return usage_error(
          text.empty() ? fmt::format("cannot run {}", command) : fmt::format("unknown command '{} {}'", command, text),
          fmt::format("there are {}", enumerated(command, names)),
          fmt::format("did you mean {} {}?", command, text.empty() ? names.front() : nearest(text, names)));
    }
    line.role = roles[static_cast<std::size_t>(found - names.begin())];
  }
  if (line.command == Command::bench) {
    line.bench = next < arguments.size() ? arguments[next++] : "";
    const std::vector<std::string> benches(std::begin(kBenchNames), std::end(kBenchNames));
    if (std::ranges::find(benches, line.bench) == benches.end()) {
      return usage_error(line.bench.empty() || line.bench[0] == '-' ? "cannot run bench"
                                                                    : fmt::format("unknown benchmark '{}'", line.bench),
                         fmt::format("there are {}", fmt::join(benches, ", ")),
                         fmt::format("did you mean bench {}?", nearest(line.bench, benches)));
    }
  }
  line.options.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  return line;
}

/// Messages quote what the user wrote, line ends and all.
Error on_one_line(Error error) {
  const auto is_control = [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; };
  for (std::string* part : {&error.what, &error.why, &error.fix}) std::ranges::replace_if(*part, is_control, '?');
  return error;
}

using Given = std::map<std::string_view, Assignment>;  // by the option's long name

/// The part of an assignment that is for port i; null when it is for none or not for that port.
std::optional<Assignment> part_for(const Assignment& assignment, std::size_t i) {
  if (assignment.option->arity != Arity::by_port || assignment.origin.source == Source::file) return assignment;
  if (i >= assignment.texts.size()) return std::nullopt;
  return Assignment{assignment.option, {assignment.texts[i]}, assignment.origin};
}

template <typename T>
Result<void> put(const Assignment& assignment, T& owner) {
  for (const std::string& text : assignment.texts) WARPLINE_CHECK(check_text(text));
  return std::get<Access<T>>(assignment.option->access).set(owner, assignment.texts);
}

/// Every wrong value is named; of the right ones the last source's stands.
class Loader {
 public:
  explicit Loader(CommandLine line) : line_(std::move(line)) {
    loaded_.command = line_.task == Task::run ? line_.command : Command::config;
    loaded_.task = line_.task;
    loaded_.config.command = line_.command;
    if (line_.command == Command::bench) loaded_.config.bench.name = line_.bench;
    loaded_.config.key.task = line_.key_task;
    loaded_.config.role = line_.role;
  }

  Result<LoadedConfig> load(const Environment& environment, const ReadFile& read_file) && {
    flags_ = read_flags(line_.command, line_.options, problems_);
    variables_ = read_environment(line_.command, environment, problems_);
    if (line_.task != Task::run) take_own_json(environment);
    read_file_with(read_file);

    for (const auto* source : {&file_.values, &variables_, &flags_}) check_values(*source);
    for (const PortTable& table : file_.ports) check_values(table.values);
    name_file_ports();
    for (const auto* source : {&file_.values, &variables_, &flags_}) apply(*source);
    set_up_ports();
    resolve_defaults();
    if (line_.task == Task::run) loaded_.json = loaded_.config.run.json;

    if (problems_.empty()) check();
    for (Error& problem : problems_) problem = on_one_line(std::move(problem));
    if (line_.task == Task::run && !problems_.empty()) return problems_.front();
    loaded_.problems = std::move(problems_);
    describe();
    return std::move(loaded_);
  }

 private:
  /// `--json` of `config show` is about its own answer, not a value to show.
  void take_own_json(const Environment& environment) {
    Problems named_already;
    std::vector<Assignment> own = read_environment(Command::config, environment, named_already);
    const auto is_json = [](const Assignment& assignment) { return assignment.option->name == "json"; };
    std::ranges::copy_if(flags_, std::back_inserter(own), is_json);
    std::erase_if(flags_, is_json);
    check_values(own);
    Config answer;
    for (const Assignment& assignment : own) {
      if (put(assignment, answer).ok()) loaded_.json = answer.run.json;
    }
  }

  void read_file_with(const ReadFile& read_file) {
    for (const auto* source : {&flags_, &variables_}) {
      for (const Assignment& assignment : *source) {
        if (assignment.option->name != "config") continue;
        const std::string& path = assignment.texts.front();
        loaded_.file = path;
        auto text = read_file(path);
        if (text.ok()) {
          file_ = read_config_file(*text, path, problems_);
        } else {
          problems_.push_back(std::move(text).error());
        }
        return;
      }
    }
  }

  void check_values(const std::vector<Assignment>& assignments) {
    for (const Assignment& assignment : assignments) {
      Config config;
      port::PortSettings port;
      if (std::holds_alternative<Access<Config>>(assignment.option->access)) note(assignment, put(assignment, config));
      if (!assignment.option->is_port_setup()) continue;
      if (assignment.option->arity != Arity::by_port) note(assignment, put(assignment, port));
      for (std::size_t i = 0; assignment.option->arity == Arity::by_port && i < assignment.texts.size(); ++i) {
        note(assignment, put(Assignment{assignment.option, {assignment.texts[i]}, assignment.origin}, port));
      }
    }
  }

  void note(const Assignment& assignment, const Result<void>& result) {
    if (result.ok()) return;
    Error error = result.error();
    error.what = assignment.place() + ": " + error.what;
    if (error.fix.empty()) error.fix = fmt::format("see warpline {} --help", name(line_.command));
    problems_.push_back(std::move(error));
  }

  void name_file_ports() {
    const Option* option = find_option(line_.command, "port");
    if (option == nullptr || file_.ports.empty()) return;
    Assignment ports{option, {}, file_.ports.front().origin};
    for (const PortTable& table : file_.ports) ports.texts.push_back(table.spec);
    check_values({ports});
    apply({ports});
  }

  /// Options of other commands come from a file that several commands share; they have been checked, and that is all.
  void apply(const std::vector<Assignment>& assignments) {
    for (const Assignment& assignment : assignments) {
      const bool of_config = std::holds_alternative<Access<Config>>(assignment.option->access);
      if (!of_config || !assignment.option->taken_by(line_.command)) continue;
      if (put(assignment, loaded_.config).ok()) given_[assignment.option->name] = assignment;
    }
  }

  static void apply_setup(const std::vector<Assignment>& assignments, std::size_t i, port::PortSettings& port,
                          Given& given) {
    for (const Assignment& assignment : assignments) {
      if (!assignment.option->is_port_setup()) continue;
      const std::optional<Assignment> part = part_for(assignment, i);
      if (part && put(*part, port).ok()) given[assignment.option->name] = *part;
    }
  }

  void set_up_ports() {
    constexpr std::size_t kNoPort = SIZE_MAX;
    std::vector<port::PortSettings>& ports = loaded_.config.ports;
    for (const auto* source : {&file_.values, &variables_, &flags_}) {
      apply_setup(*source, kNoPort, loaded_.config.port_defaults, defaults_given_);
    }
    port_given_.resize(ports.size());
    for (std::size_t i = 0; i < ports.size(); ++i) {
      apply_setup(file_.values, i, ports[i], port_given_[i]);
      const auto table = std::ranges::find(file_.ports, ports[i].spec, &PortTable::spec);
      if (table != file_.ports.end()) apply_setup(table->values, i, ports[i], port_given_[i]);
      apply_setup(variables_, i, ports[i], port_given_[i]);
      apply_setup(flags_, i, ports[i], port_given_[i]);
    }
    for (const auto* source : {&variables_, &flags_}) {
      for (const Assignment& assignment : *source) {
        if (assignment.option->arity != Arity::by_port || assignment.texts.size() <= ports.size()) continue;
        problems_.push_back(usage_error(fmt::format("{} has {} values", assignment.place(), assignment.texts.size()),
                                        fmt::format("the number of ports is {}", ports.size()),
                                        "give one for each --port, or none for a port without"));
      }
    }
  }

  /// What follows from other values where it is not given.
  void resolve_defaults() {
    datapath::ForwardSettings& forward = loaded_.config.forward;
    if (!given_.contains("memory") && runs_on_gpu(forward.engine))
      loaded_.config.pool.memory = memory::MemoryKind::pinned;
    const bool has_ctas = forward.engine == EngineKind::persistent && forward.io == ProcessorKind::cpu;
    if (!given_.contains("ctas") && has_ctas) forward.ctas = kPersistentCtas;
    StreamConfig& stream = loaded_.config.stream;
    if (!given_.contains("ack") && stream.io == ProcessorKind::gpu) stream.ack = ProcessorKind::gpu;
  }

  [[nodiscard]] const Assignment* find_given(std::string_view option) const {
    if (const auto found = given_.find(option); found != given_.end()) return &found->second;
    for (const Given& given : port_given_) {
      if (const auto found = given.find(option); found != given.end()) return &found->second;
    }
    const auto found = defaults_given_.find(option);
    return found == defaults_given_.end() ? nullptr : &found->second;
  }

  void check() {
    const GivenOptions given = [this](std::string_view option) -> GivenOption {
      const Assignment* assignment = find_given(option);
      if (assignment == nullptr) return {"--" + std::string(option), Source::built_in};
      return {assignment->place(), assignment->origin.source};
    };
    problems_ = check_config(loaded_.config, given, line_.task != Task::show);
  }

  [[nodiscard]] static Origin origin_of(const Given& given, std::string_view option) {
    const auto found = given.find(option);
    return found == given.end() ? Origin{} : found->second.origin;
  }

  void describe_setup(const std::string& table, const port::PortSettings& port, const Given& given) {
    for (const Option& option : options()) {
      const auto* access = std::get_if<Access<port::PortSettings>>(&option.access);
      if (access == nullptr || (port.spec.empty() && option.arity == Arity::by_port)) continue;
      loaded_.settings.push_back(
          {fmt::format("{}.{}", table, option.key), access->get(port), origin_of(given, option.name), &option});
    }
  }

  void describe() {
    const Config& config = loaded_.config;
    for (const Option& option : options()) {
      const auto* access = std::get_if<Access<Config>>(&option.access);
      if (access == nullptr || !option.taken_by(line_.command) || option.section == "port") continue;
      loaded_.settings.push_back({option.path(), access->get(config), origin_of(given_, option.name), &option});
    }
    const Option* const port = find_option(line_.command, "port");
    if (port == nullptr) return;
    if (config.ports.empty()) describe_setup("port-defaults", config.port_defaults, defaults_given_);
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
      const std::string table = fmt::format("port[{}]", i);
      loaded_.settings.push_back({table + ".spec", config.ports[i].spec, origin_of(given_, "port"), port});
      describe_setup(table, config.ports[i], port_given_[i]);
    }
  }

  CommandLine line_;
  LoadedConfig loaded_;
  Problems problems_;
  std::vector<Assignment> flags_;
  std::vector<Assignment> variables_;
  FileContent file_;
  Given given_;
  Given defaults_given_;
  std::vector<Given> port_given_;
};

}  // namespace

std::string to_string(const Origin& origin) {
  switch (origin.source) {
    case Source::built_in:
      return "default";
    case Source::file:
      return "file " + origin.where;
    case Source::environment:
      return "environment " + origin.where;
    case Source::flag:
      return "flag";
  }
  return {};
}

std::string Assignment::place() const {
  return origin.source == Source::file ? origin.where + ": " + option->path() : origin.where;
}

Result<LoadedConfig> load(const std::vector<std::string>& arguments, const Environment& environment,
                          const ReadFile& read_file) {
  auto line = parse_command_line(arguments);
  if (!line.ok()) return on_one_line(std::move(line).error());
  Result<LoadedConfig> loaded = Loader(*std::move(line)).load(environment, read_file);
  if (!loaded) return loaded;
  loaded->arguments = arguments;
  loaded->environment = environment;
  return loaded;
}

}  // namespace warpline::config
