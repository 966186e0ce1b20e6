// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_report.h"

#include <string>

namespace warpline {

using Json = nlohmann::ordered_json;

service::MessageTotals daemon_totals(const daemon::MessageDaemon& daemon) {
  const daemon::ClientRecord all = daemon.door().total();
  const message::EndpointCounters& endpoint = daemon.endpoint().counters();
  service::MessageTotals totals;
  totals.submitted = all.submitted;
  for (std::size_t i = 0; i < totals.completed.size(); ++i) totals.completed[i] = all.completed[i];
  totals.served = all.answered;
  totals.not_served = daemon.broker().counters().no_service.get() + all.overflowed + all.declined;
  totals.bytes_out = all.bytes_out;
  totals.bytes_in = all.bytes_in;
  totals.connected = endpoint.sessions_opened.get();
  totals.accepted = endpoint.sessions_accepted.get();
  for (std::size_t i = 0; i < totals.lost.size(); ++i) totals.lost[i] = daemon.broker().counters().lost[i].get();
  return totals;
}

Json door_json(const daemon::MessageDaemon& daemon) {
  const daemon::DoorCounters& door = daemon.door().counters();
  const daemon::BrokerCounters& broker = daemon.broker().counters();
  return {{"attached", door.attached.get()},
          {"detached", door.detached.get()},
          {"expelled", broker.expelled.get()},
          {"refused_user", door.refused_user.get()},
          {"refused_full", door.refused_full.get()},
          {"refused_memory", door.refused_memory.get()},
          {"refused_descriptors", door.refused_descriptors.get()},
          {"no_service", broker.no_service.get()}};
}

Json clients_json(const daemon::MessageDaemon& daemon, Nanos now) {
  Json all = Json::array();
  for (const daemon::ClientRecord& client : daemon.door().records()) {
    Json requests = {{"submitted", client.submitted}};
    for (std::size_t i = 0; i < client.completed.size(); ++i) {
      requests[std::string(message::name(static_cast<message::MessageStatus>(i)))] = client.completed[i];
    }
    requests["turned_away"] = client.turned_away;
    Json one = {{"pid", client.credentials.process},
                {"uid", client.credentials.user},
                {"present", client.present},
                {"attached_ago_s", static_cast<double>(now.value - client.attached_at.value) / 1e9},
                {"sessions_opened", client.sessions_opened},
                {"requests", requests},
                {"sent", client.sent},
                {"delivered", client.delivered},
                {"answered", client.answered},
                {"declined", client.declined},
                {"overflowed", client.overflowed},
                {"bytes_out", client.bytes_out},
                {"bytes_in", client.bytes_in}};
    if (client.expelled_for != daemon::Misdeed::none) one["expelled_for"] = name(client.expelled_for);
    all.push_back(std::move(one));
  }
  return all;
}

void add_door_metrics(metrics::Snapshot& snapshot, const daemon::MessageDaemon& daemon) {
  const daemon::DoorCounters& door = daemon.door().counters();
  snapshot.counter("warpline_daemon_attached_clients", "clients", "Programs that attached").with(door.attached.get());
  snapshot.counter("warpline_daemon_detached_clients", "clients", "Programs that left").with(door.detached.get());
  snapshot.counter("warpline_daemon_expelled_clients", "clients", "Programs that were expelled")
      .with(daemon.broker().counters().expelled.get());
  snapshot.counter("warpline_daemon_refused_clients", "clients", "Programs that were not let in, by reason")
      .with(door.refused_user.get(), {{"reason", "user"}})
      .with(door.refused_full.get(), {{"reason", "full"}})
      .with(door.refused_memory.get(), {{"reason", "memory"}})
      .with(door.refused_descriptors.get(), {{"reason", "descriptors"}});
}

}  // namespace warpline
