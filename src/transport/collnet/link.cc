#include "transport/collnet/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/ranks/abort.h"
#include "transport/collnet/join.h"
#include "transport/collnet/path.h"
#include "transport/collnet/set_driver.h"
#include "transport/collnet/task.h"
#include "transport/net/lane/device_memory.h"
#include "transport/net/lane/user_registrations.h"

namespace tutti::collnet {
namespace {

constexpr std::uint64_t kLongestElement = 8;

plugin::CollNet& networkOf(const LinkSetup& setup) {
  return *setup.network;
}

/// Every element has to fit into a call.
Status checkMostBytes(const CollNetPath& path, std::uint64_t most) {
  if (most >= kLongestElement) return {};
  return fail(ncclInvalidUsage,
              "{}: the network takes {} bytes in a call at most, less than an element has; NCCL_COLLNET_ENABLE=0 does "
              "without it",
              path.text(), most);
}

}  // namespace

struct CollNetLink::User final : net::MemoryRegistrar {
  explicit User(CollNetLink& of) : link(of), registrations(of.setup_.registered, *this) {}
  /// Slots lie on the device in both directions, or in none.
  Result<void*> registerUser(void* data, std::size_t bytes) override {
    return link.registerMemory(data, bytes, link.setup_.recv);
  }
  void deregister(void* registration) override {
    if (registration == nullptr) return;  // there is nothing to be taken back
    networkOf(link.setup_).deregisterMemory(link.connection_->end, registration).ignore();
  }
  std::string text() const override { return link.connection_->path.text(); }

  CollNetLink& link;
  net::UserRegistrations registrations;
};

CollNetLink::CollNetLink(LinkSetup setup)
    : setup_(std::move(setup)),
      connection_(std::make_unique<Connection>()),
      task_(std::make_unique<CollNetTask>(*connection_)) {
  connection_->network = setup_.network.get();
  connection_->path = {setup_.self, setup_.rail, fmt::format("COLLNET/{}/{}", setup_.network->name(), setup_.device)};
}

CollNetLink::~CollNetLink() {
  close();
}

void CollNetLink::close() {
  plugin::CollNet& network = networkOf(setup_);
  connection_->user = nullptr;
  user_.reset();
  // Calls may be under way: the memory lives on until the connection is closed.
  for (void* registration : std::exchange(registrations_, {})) {
    network.deregisterMemory(connection_->end, registration).ignore();
  }
  if (connection_->end != nullptr) network.close(std::exchange(connection_->end, nullptr)).ignore();
  if (listener_ != nullptr) network.closeListen(std::exchange(listener_, nullptr)).ignore();
}

proxy::ProgressTask* CollNetLink::task() {
  return task_.get();
}

std::shared_ptr<proxy::StepEvents> CollNetLink::stepEvents(std::size_t set, device::Direction direction) const {
  return task_->stepEvents(set, direction);
}

const CollNetPath& CollNetLink::path() const {
  return connection_->path;
}

std::string CollNetLink::description(device::Direction direction) const {
  const bool onDevice = (direction == device::Direction::Send ? setup_.send : setup_.recv).onDevice;
  return connection_->path.description + (onDevice ? "/GDRDMA" : "");
}

Result<CollNetAddress> CollNetLink::listen() {
  const auto properties = networkOf(setup_).properties(setup_.device);
  if (!properties.ok()) return failCollNet(path(), properties.status(), "asking for the device's properties");
  CollNetAddress address{.mostBytes = properties.value().maxCollBytes};
  TRY(checkMostBytes(path(), address.mostBytes));
  auto listener = networkOf(setup_).listen(setup_.device, address.handle);
  if (!listener.ok()) return failCollNet(path(), listener.status(), "listen");
  listener_ = listener.value();
  return address;
}

Status CollNetLink::take(void* connection) {
  if (connection == nullptr) {
    return fail(ncclSystemError,
                "{}: connect gave no connection: the network is not available to this job. Ask its administrator, or "
                "set NCCL_COLLNET_ENABLE=0",
                path().text());
  }
  connection_->end = connection;
  if (setup_.registered != nullptr) {
    user_ = std::make_unique<User>(*this);
    connection_->user = &user_->registrations;
  }
  const Status closed = networkOf(setup_).closeListen(std::exchange(listener_, nullptr));
  return closed.ok() ? closed : failCollNet(path(), closed, "closeListen");
}

Status CollNetLink::connect(std::span<const CollNetAddress> nodes, int node, Deadline deadline, const Abort* abort) {
  const bool placed = node >= 0 && static_cast<std::size_t>(node) < nodes.size();
  if (!placed || listener_ == nullptr) {
    return fail(ncclInternalError, "{}: connect of node {} of {}{}", path().text(), node, nodes.size(),
                listener_ == nullptr ? " before listen" : "");
  }
  connection_->nodes = nodes.size();
  connection_->node = static_cast<std::uint64_t>(node);
  connection_->mostBytes = nodes[0].mostBytes;
  JoinRequest request{.network = setup_.network, .handles = {}, .node = node, .listener = listener_};
  for (const CollNetAddress& address : nodes) {
    // All nodes cut their calls alike.
    connection_->mostBytes = std::min(connection_->mostBytes, address.mostBytes);
    request.handles.push_back(address.handle);
  }
  TRY(checkMostBytes(path(), connection_->mostBytes));
  const auto begin = SteadyClock::now();
  const JoinOutcome outcome = join(std::move(request), deadline, abort);
  if (outcome.end == JoinOutcome::End::Returned) {
    if (outcome.status.ok()) return take(outcome.connection);
    recallLastError(outcome.said);
    return failCollNet(path(), outcome.status, "connect");
  }
  listener_ = nullptr;  // the network may still use it
  if (outcome.end == JoinOutcome::End::Aborted) return abort->status();
  return fail(ncclRemoteError,
              "{}: connect has not returned after {:.1f} s. It waits for the heads of this rail on all {} nodes: look "
              "for another node's first error, and whether its network works; NCCL_COLLNET_ENABLE=0 does without it",
              path().text(), secondsSince(begin), nodes.size());
}

Result<void*> CollNetLink::registerMemory(void* data, std::size_t bytes, const net::SlotPlace& place) {
  plugin::CollNet& network = networkOf(setup_);
  if (!place.onDevice) return network.registerMemory(connection_->end, data, bytes, plugin::PtrKind::Host);
  net::SlotPlace ways = place;
  ways.dmaBuf = place.dmaBuf && network.takesDmaBuf();
  const std::string about = path().text();
  return net::registerDeviceMemory(network, connection_->end, net::DeviceRange{*setup_.gpu, data, bytes, about}, ways);
}

Result<void*> CollNetLink::registerArea(const LaneSet::Area& area, const net::SlotPlace& place) {
  const auto made = registerMemory(area.data, area.bytes, place);
  if (!made.ok()) return failCollNet(path(), made.status(), "registering memory");
  if (made.value() != nullptr) registrations_.push_back(made.value());
  return made;
}

Status CollNetLink::registerSet(const LaneSet& set, SetSetup& driver) {
  ASSIGN(driver.sendRegistration, registerArea(set.sendArea(), setup_.send));
  ASSIGN(driver.recvRegistration, registerArea(set.recvArea(), setup_.recv));
  driver.flushes = setup_.recv.onDevice && setup_.recv.flushes;
  return {};
}

Result<std::unique_ptr<LaneSet>> CollNetLink::makeSet(const LaneSetShape& shape, SetSetup& driver) {
  const std::string about = fmt::format("lanes of {} of {}", shape.name, path().text());
  const bool onDevice = setup_.send.onDevice || setup_.recv.onDevice;
  ASSIGN(LaneSet made,
         LaneSet::create(*setup_.gpu, shape, {setup_.send.onDevice, setup_.recv.onDevice}, about, setup_.ledger));
  auto set = std::make_unique<LaneSet>(std::move(made));
  const std::size_t before = registrations_.size();
  Status registered;
  {
    const auto harmless = onDevice ? std::make_unique<ErrorsAsInfo>() : nullptr;
    registered = registerSet(*set, driver);
    if (registered.ok()) return set;
    if (onDevice)
      info(kInit | kNet, "{}: slots of {} lie in host memory, for the network refuses those in GPU memory: {}",
           path().text(), shape.name, lastErrorText());
  }
  // The memory goes with the set.
  for (; registrations_.size() > before; registrations_.pop_back()) {
    networkOf(setup_).deregisterMemory(connection_->end, registrations_.back()).ignore();
  }
  if (!onDevice) return registered;
  setup_.send = {};
  setup_.recv = {};
  return makeSet(shape, driver);
}

Result<std::size_t> CollNetLink::addLanes(const LaneSetShape& shape) {
  constexpr std::uint32_t kUnit = 16;  // kernels move so many bytes at once
  const bool shaped = !shape.channels.empty() && shape.slotBytes != 0 && shape.slotBytes % kUnit == 0;
  if (connection_->end == nullptr || sets_.size() == CollNetTask::kMostSets || !shaped) {
    return fail(ncclInternalError, "{}: {} lanes of {} bytes for {}, with {} sets and {}", path().text(),
                shape.channels.size(), shape.slotBytes, shape.name, sets_.size(),
                connection_->end == nullptr ? "no connection" : "a connection");
  }
  SetSetup driver{.name = shape.name, .channels = shape.channels};
  ASSIGN(std::unique_ptr<LaneSet> made, makeSet(shape, driver));
  const std::size_t number = sets_.size();
  const LaneSet& set = *sets_.emplace_back(std::move(made));
  for (int lane = 0; lane < set.lanes(); ++lane) driver.lanes.push_back(set.conn(lane, net::Viewer::Host));
  task_->add(std::move(driver));
  logLanes(set.shape());
  return number;
}

void CollNetLink::logLanes(const LaneSetShape& shape) const {
  for (const int channel : shape.channels) {
    info(kInit | kNet, "CollNet {:02}/0 : {} [receive] via {}", channel, setup_.self.rank,
         description(device::Direction::Recv));
    info(kInit | kNet, "CollNet {:02}/1 : {} [send] via {}", channel, setup_.self.rank,
         description(device::Direction::Send));
  }
}

device::CollNetConn CollNetLink::conn(std::size_t set, int lane) const {
  return sets_[set]->conn(lane, net::Viewer::Kernels);
}

}  // namespace tutti::collnet
