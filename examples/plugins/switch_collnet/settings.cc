#include "settings.h"

#include <ifaddrs.h>

#include <sstream>

namespace switch_collnet {

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Takes a number that is at least `least` from a variable, if it is there. False: that is none.
template <class T>
bool readNumber(const char* name, T least, T& to, std::string& why) {
  const std::string text = variable(name);
  if (text.empty()) return true;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  const long long number = digits && text.size() < 16 ? std::atoll(text.c_str()) : -1;
  const T value = static_cast<T>(number);
  if (number < 0 || value < least || static_cast<long long>(value) != number) {
    why = std::string(name) + "=" + text + ": a number from " + std::to_string(least) + " on is needed";
    return false;
  }
  to = value;
  return true;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// The first address of IPv4 of the interface of that name. Empty: it has none, or there is no such interface.
std::optional<Address> addressOf(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::optional<Address> found;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || interface != one->ifa_name) continue;
    found = Address{reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr, 0};
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace

std::string Settings::read() {
  std::string why;
  const auto address = Address::parse(variable("SWITCH_COLLNET_ADDRESS"));
  if (!variable("SWITCH_COLLNET_ADDRESS").empty() && (!address || !address->known())) {
    return "SWITCH_COLLNET_ADDRESS=" + variable("SWITCH_COLLNET_ADDRESS") + ": an address is like 10.0.0.1:5000";
  }
  switchAt = address.value_or(Address{});
  const std::string hostText = variable("SWITCH_COLLNET_HOST");
  auto own = Address::parse(hostText.empty() ? "127.0.0.1" : hostText);
  if (!own) own = addressOf(hostText);
  if (!own) return "SWITCH_COLLNET_HOST=" + hostText + ": an address of IPv4, or an interface that has one, is needed";
  host = *own;
  host.port = 0;
  const std::string checks = variable("SWITCH_COLLNET_CHECKS");
  if (checks != "" && checks != "abort" && checks != "error") return "SWITCH_COLLNET_CHECKS is neither abort nor error";
  abortOnMisuse = checks != "error";
  int cuda = 0;
  if (!readNumber("SWITCH_COLLNET_CONNECT_MS", 1, connectMs, why) ||
      !readNumber("SWITCH_COLLNET_OPERATION_MS", 1, operationMs, why) ||
      !readNumber("SWITCH_COLLNET_MAX_COLL_BYTES", std::size_t{1}, maxCollBytes, why) ||
      !readNumber("SWITCH_COLLNET_CUDA", 0, cuda, why)) {
    return why;
  }
  if (maxCollBytes > kMostPayload) return "SWITCH_COLLNET_MAX_COLL_BYTES is more than the switch takes, 2 GiB";
  gpuMemory = cuda != 0;
  statisticsFile = variable("SWITCH_COLLNET_STATISTICS");
  why = faults.parse(variable("SWITCH_COLLNET_FAULTS"));
  return why.empty() ? "" : "SWITCH_COLLNET_FAULTS: " + why;
}

const DeviceList& devices() {
  static const DeviceList list = [] {
    DeviceList made;
    std::size_t count = 1;
    int speed = 0;
    if (!readNumber("SWITCH_COLLNET_DEVICES", std::size_t{0}, count, made.why)) return made;
    made.all.resize(std::min<std::size_t>(count, 64));
    made.coll = static_cast<int>(made.all.size());
    if (!readNumber("SWITCH_COLLNET_COLL_DEVICES", 0, made.coll, made.why)) return made;
    if (!readNumber("SWITCH_COLLNET_SPEED", 1, speed, made.why)) return made;
    made.coll = std::min(made.coll, static_cast<int>(made.all.size()));
    const auto names = split(variable("SWITCH_COLLNET_NAMES"));
    const auto paths = split(variable("SWITCH_COLLNET_PCI"));
    for (std::size_t i = 0; i < made.all.size(); ++i) {
      made.all[i].name = i < names.size() ? names[i] : "switch" + std::to_string(i);
      if (i < paths.size()) made.all[i].pciPath = paths[i];
      if (speed > 0) made.all[i].speed = speed;
    }
    return made;
  }();
  return list;
}

std::string start(ncclDebugLogger_t log) {
  logger = log;
  Settings settings;
  const std::string why = settings.read();
  return why.empty() ? devices().why : why;
}

std::string ownName(int device) {
  char host[65] = {};
  ::gethostname(host, sizeof(host) - 1);
  return std::string(host) + " process " + std::to_string(::getpid()) + " " +
         devices().all[static_cast<std::size_t>(device)].name;
}

}  // namespace switch_collnet
