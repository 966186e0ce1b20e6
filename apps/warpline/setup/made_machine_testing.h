// SPDX-License-Identifier: Apache-2.0
// A made-up machine with the kernel behind its sysfs, for tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "setup/machine_files.h"
#include "warpline/base/scratch_folder_testing.h"

namespace warpline::setup {

inline constexpr const char* kNic = "0000:01:00.0";
inline const std::string kPool = "sys/kernel/mm/hugepages/hugepages-2048kB";

/// Gives functions of the PCI bus to drivers as the kernel does, and has memory for so many huge pages.
class MadeMachine : public MachineFiles {
 public:
  explicit MadeMachine(const std::filesystem::path& root) : MachineFiles(root), root_(root) {}

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  /// A function with an IOMMU group of its own; `own` is the driver that asks for such functions.
  void add_function(const std::string& address, const std::string& own, const std::string& kind = "0x020000",
                    const std::string& vendor = "0x8086") {
    const std::string folder = "sys/bus/pci/devices/" + address;
    write(folder + "/vendor", vendor + "\n");
    write(folder + "/class", kind + "\n");
    write(folder + "/driver_override", "(null)\n");
    std::filesystem::create_directories(root_ / folder / "iommu_group/devices" / address);
    own_[address] = own;
    add_driver(own);
    probe(address);
  }
  void add_driver(const std::string& name) { write("sys/bus/pci/drivers/" + name + "/bind", ""); }
  void add_hugepages(const std::string& folder, unsigned reserved, unsigned free) {
    write(folder + "/nr_hugepages", std::to_string(reserved) + "\n");
    write(folder + "/free_hugepages", std::to_string(free) + "\n");
  }

  Result<void> tell_kernel(const std::filesystem::path& path, std::string_view text) override {
    const std::string file = path.filename();
    if (file == refused_) return environment_error("cannot write", "refused");
    if (file == "driver_override") {
      write(path.relative_path(), text == "\n" ? "(null)\n" : std::string(text) + "\n");
    } else if (file == "unbind") {
      std::filesystem::remove(at(path.parent_path().parent_path().parent_path() / text / "driver"));
      std::filesystem::remove(at(path.parent_path()));
    } else if (file == "drivers_probe") {
      probe(std::string(text));
    } else if (file == "nr_hugepages") {
      write(path.relative_path(), std::to_string(std::min(most_pages_, std::stoul(std::string(text)))) + "\n");
    } else {
      return environment_error("cannot write", "there is no such file");
    }
    return {};
  }
  bool has_ipv4_address(const std::string& interface) const override { return interface == addressed_; }
  Result<void> give_to(const std::filesystem::path& path, unsigned user) override {
    owners_[path] = user;
    return {};
  }
  Result<unsigned> owner(const std::filesystem::path& path) const override {
    const auto found = owners_.find(path);
    return found == owners_.end() ? 0 : found->second;
  }

  [[nodiscard]] std::string driver(const std::string& address) const {
    return link_name("/sys/bus/pci/devices/" + address + "/driver");
  }
  /// The kernel refuses what is written into files of that name.
  void refuse(std::string name) { refused_ = std::move(name); }
  /// The kernel has an IPv4 address on that interface.
  void set_addressed(std::string interface) { addressed_ = std::move(interface); }
  /// `upper` stands on `lower`, as a master or as a VLAN.
  void put_on(const std::string& lower, const std::string& upper, bool is_master) {
    const std::filesystem::path folder = root_ / "sys/class/net" / lower;
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(root_ / "sys/class/net" / upper);
    if (is_master) std::filesystem::create_symlink("../" + upper, folder / "master");
    std::filesystem::create_symlink("../" + upper, folder / ("upper_" + upper));
  }
  void set_most_pages(unsigned long pages) { most_pages_ = pages; }

 private:
  void probe(const std::string& address) {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    std::string wanted = read(folder + "/driver_override");
    wanted.resize(wanted.find('\n'));
    if (wanted == "(null)") wanted = own_[address];
    const std::filesystem::path driver = at("/sys/bus/pci/drivers/" + wanted);
    if (wanted.empty() || !std::filesystem::exists(driver) || !link_name(folder + "/driver").empty()) return;
    std::filesystem::create_symlink(driver, at(folder + "/driver"));
  }

  std::filesystem::path root_;
  std::map<std::string, std::string> own_;
  std::map<std::filesystem::path, unsigned> owners_;
  std::string refused_;
  std::string addressed_;
  unsigned long most_pages_ = 1'000'000;
};

}  // namespace warpline::setup
