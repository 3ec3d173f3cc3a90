#include "ras/report/event.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "ras/report/json_report.h"
#include "ras/report/lines.h"

namespace tutti::ras {

namespace {

using nlohmann::ordered_json;

ordered_json devicesOf(std::uint64_t mask) {
  ordered_json list = ordered_json::array();
  for (int bit = 0; bit < 64; ++bit) {
    if ((mask >> bit & 1) != 0) list.push_back(bit);
  }
  return list;
}

ordered_json peerOf(const Event& event) {
  if (const Address* const address = std::get_if<Address>(&event.who)) return {{"addr", address->text()}};
  const auto& process = std::get<ProcessFacts>(event.who);
  return {{"host", process.address.hostText()},
          {"pid", process.pid},
          {"cuda_devs", devicesOf(process.cudaDevices)},
          {"nvml_devs", devicesOf(process.nvmlDevices)}};
}

}  // namespace

std::string_view eventName(EventKind kind) {
  constexpr std::array<std::string_view, 13> kNames{"PEER_NEW",          "PEER_DEAD",       "PEER_LEFT",
                                                    "PEER_CONNECTING",   "PEER_CONNECTED",  "PEER_DISCONNECTED",
                                                    "PEER_UNRESPONSIVE", "PEER_RECOVERED",  "PEER_RETRY",
                                                    "PEER_INIT_TIMEOUT", "PEER_SEND_STUCK", "PEER_KEEPALIVE_TIMEOUT",
                                                    "PEER_TIMEOUT_DEAD"};
  return kNames[static_cast<std::size_t>(kind)];
}

EventGroup groupOf(EventKind kind) {
  return kind <= EventKind::PeerLeft ? kLifecycle : kTrace;
}

std::string eventText(const Event& event) {
  const Address* const address = std::get_if<Address>(&event.who);
  const std::string who = address != nullptr ? address->text() : processText(std::get<ProcessFacts>(event.who));
  return fmt::format("[{}] {}: {}{}{}\n", timestampText(event.when), eventName(event.kind), who,
                     event.details.empty() ? "" : " ", event.details);
}

std::string eventJson(const Event& event) {
  const ordered_json json = {{"timestamp", timestampText(event.when)},
                             {"group", groupOf(event.kind) == kLifecycle ? "LIFECYCLE" : "TRACE"},
                             {"event", eventName(event.kind)},
                             {"peer", peerOf(event)},
                             {"details", event.details}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::ras
