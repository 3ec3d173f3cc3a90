#include "comm/network/nics.h"

#include <algorithm>

namespace tutti::comm {

namespace {

int turnOf(std::span<const int> devices, int at) {
  return devices.empty() ? -1 : devices[static_cast<std::size_t>(at) % devices.size()];
}

/// Number in the machine; -1: nothing is known.
int nicInMachine(const OwnNics& nics, const NicQuestion& question) {
  int device = -1;
  if (question.kind == device::ConnKind::Graph) {
    device = turnOf(question.direction == device::Direction::Send ? nics.ringOut : nics.ringIn, question.channel);
  }
  return device >= 0 ? device : turnOf(nics.nearest, question.channel);
}

const NicWay* wayTo(const OwnNics& nics, int nic) {
  const auto known =
      std::find_if(nics.ways.begin(), nics.ways.end(), [nic](const NicWay& way) { return way.device == nic; });
  return nic < 0 || known == nics.ways.end() ? nullptr : &*known;
}

/// The network's number of a NIC in the machine. A described machine may have other NICs than there are: the software
/// GPU's.
int numberOf(std::span<const int> devices, int nic) {
  const bool exists = std::find(devices.begin(), devices.end(), nic) != devices.end();
  return exists ? nic : turnOf(devices, nic);
}

/// The NIC on that rail, if this rank may use it; null: none.
const NicWay* onRail(const OwnNics& nics, int rail) {
  for (const NicWay& way : nics.ways) {
    if (rail >= 0 && way.rail == rail && (way.relay >= 0 || way.type <= topo::PathType::P2c)) return &way;
  }
  return nullptr;
}

}  // namespace

int nicFor(const OwnNics& nics, const NicQuestion& question) {
  if (question.devices.empty()) return -1;
  const int device = nicInMachine(nics, question);
  if (device < 0) return turnOf(question.devices, question.turn + question.channel);
  return numberOf(question.devices, device);
}

std::optional<NicAccess> accessFor(const OwnNics& nics, const NicQuestion& question) {
  return accessTo(nics, nicInMachine(nics, question));
}

std::optional<NicAccess> accessTo(const OwnNics& nics, int nic) {
  const auto known = std::find_if(nics.access.begin(), nics.access.end(),
                                  [nic](const NicAccess& access) { return nic >= 0 && access.device == nic; });
  return known == nics.access.end() ? std::nullopt : std::optional(*known);
}

RailPlace placeOf(const OwnNics& nics, const NicQuestion& question) {
  const NicWay* const way = wayTo(nics, nicInMachine(nics, question));
  return way == nullptr ? RailPlace{} : RailPlace{way->device, way->rail};
}

bool sendsThroughOthers(const OwnNics& nics) {
  return std::any_of(nics.ways.begin(), nics.ways.end(), [](const NicWay& way) { return way.relay >= 0; });
}

Route routeFor(const OwnNics& nics, const RouteQuestion& question) {
  const bool message = question.nic.kind == device::ConnKind::Mesh;
  const NicWay* way = wayTo(nics, nicInMachine(nics, question.nic));
  if (message && question.level >= 2) {
    if (const NicWay* const rail = onRail(nics, question.receiver.rail); rail != nullptr) way = rail;
  }
  if (way == nullptr) return {.device = nicFor(nics, question.nic)};
  const bool relayed = !message || question.level >= 1;
  return {
      .device = numberOf(question.nic.devices, way->device), .nic = way->device, .relay = relayed ? way->relay : -1};
}

}  // namespace tutti::comm
