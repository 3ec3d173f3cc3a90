#include "transport/net/ib/fake_fabric.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

namespace tutti::test {

Fabric& fabric() {
  static auto* const one = new Fabric();
  return *one;
}

void Fabric::plug(std::vector<FakeNic> now) {
  const std::lock_guard lock(mutex);
  nics.clear();
  for (FakeNic& nic : now) {
    nics.push_back(std::make_unique<NicState>());
    nics.back()->is = std::move(nic);
    std::snprintf(nics.back()->device.name, sizeof(nics.back()->device.name), "%s", nics.back()->is.name.c_str());
  }
  failures_.clear();
  changes_.clear();
  works_.clear();
  calls_.clear();
  work_.clear();
  faults_.clear();
  late_.clear();
  keepsLate_ = false;
  held_ = false;
}

NicState& Fabric::nicOf(const std::string& name) {
  return **std::find_if(nics.begin(), nics.end(), [&](const auto& nic) { return nic->is.name == name; });
}

const FakePort& Fabric::portOf(const Pair& pair) const {
  return pair.nic->is.ports[pair.prepared.port_num - 1u];
}

void Fabric::change(const std::string& nic, int port, const FakePort& now) {
  const std::lock_guard lock(mutex);
  nicOf(nic).is.ports[static_cast<std::size_t>(port - 1)] = now;
}

FakeCounts Fabric::counts() {
  const std::lock_guard lock(mutex);
  return live;
}

std::string Fabric::file() {
  Dl_info about{};
  return ::dladdr(reinterpret_cast<void*>(&tuttiFakeVerbs), &about) != 0 ? about.dli_fname : "";
}

void Fabric::failCall(const std::string& function, int nth, int error, int times) {
  const std::lock_guard lock(mutex);
  failures_[function] = {.nth = nth, .error = error, .times = times};
}

void Fabric::failChange(ibv_qp_state wanted, int error, int times, int nth) {
  const std::lock_guard lock(mutex);
  changes_[wanted] = {.nth = nth, .error = error, .times = times};
}

int Fabric::calls(const std::string& function) {
  const std::lock_guard lock(mutex);
  return calls_[function];
}

void Fabric::failWork(ibv_wr_opcode opcode, int nth, ibv_wc_status status, std::uint32_t vendor, bool arrives) {
  const std::lock_guard lock(mutex);
  works_[opcode] = {.nth = nth, .error = status, .times = 1, .vendor = vendor, .arrives = arrives};
}

void Fabric::keepLate() {
  const std::lock_guard lock(mutex);
  keepsLate_ = true;
}

bool Fabric::deliverLate() {
  const std::lock_guard lock(mutex);
  if (late_.empty()) return false;
  if (!carryOutLate(late_.front())) late_.pop_front();
  return true;
}

void Fabric::loseReceives(const std::string& nic) {
  const std::lock_guard lock(mutex);
  nicOf(nic).losesReceives = true;
}

void Fabric::delayAcknowledgements(const std::string& nic, bool delayed) {
  const std::lock_guard lock(mutex);
  NicState& state = nicOf(nic);
  state.delaysAcknowledgements = delayed;
  if (delayed) return;
  for (Queue* queue : state.queues) {
    queue->entries.insert(queue->entries.end(), queue->delayed.begin(), queue->delayed.end());
    queue->delayed.clear();
  }
}

void Fabric::plugWire(const std::string& nic) {
  const std::lock_guard lock(mutex);
  nicOf(nic).cut = false;
}

int Fabric::failing(const std::string& function) {
  const std::lock_guard lock(mutex);
  ++calls_[function];
  const auto found = failures_.find(function);
  if (found == failures_.end() || found->second.times == 0 || --found->second.nth > 0) return 0;
  --found->second.times;
  return found->second.error;
}

int Fabric::failingChange(ibv_qp_state wanted) {
  const auto found = changes_.find(wanted);
  if (found == changes_.end() || found->second.times == 0 || --found->second.nth > 0) return 0;
  --found->second.times;
  return found->second.error;
}

ibv_wc_status Fabric::plannedFor(const Work& work, std::uint32_t* vendor, bool* arrives) {
  const auto found = works_.find(work.wr.opcode);
  if (found == works_.end() || found->second.times == 0 || --found->second.nth > 0) return IBV_WC_SUCCESS;
  --found->second.times;
  *vendor = found->second.vendor;
  *arrives = found->second.arrives;
  return static_cast<ibv_wc_status>(found->second.error);
}

void Fabric::hold(bool held) {
  std::thread thread;
  {
    const std::lock_guard lock(mutex);
    stop_ = true;
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
  const std::lock_guard lock(mutex);
  held_ = held;
  if (!held) runAll();
}

bool Fabric::deliverOne(bool fromTheLast) {
  const std::lock_guard lock(mutex);
  std::vector<Pair*> all;
  for (const auto& nic : nics) {
    for (const auto& [number, pair] : nic->pairs) all.push_back(pair);
  }
  if (fromTheLast) std::reverse(all.begin(), all.end());
  return std::any_of(all.begin(), all.end(), [&](Pair* pair) { return step(*pair); });
}

void Fabric::deliverByThread() {
  const std::lock_guard lock(mutex);
  held_ = true;
  stop_ = false;
  thread_ = std::thread([this] { deliver(); });
}

void Fabric::deliver() {
  std::minstd_rand draw(1);
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (stop_) return;
      std::vector<Pair*> all;
      for (const auto& nic : nics) {
        for (const auto& [number, pair] : nic->pairs) {
          if (!pair->kept.empty()) all.push_back(pair);
        }
      }
      const std::size_t which = draw() % (all.size() + late_.size() + 1);
      if (which < all.size()) {
        step(*all[which]);
      } else if (which < all.size() + late_.size()) {
        const auto late = late_.begin() + static_cast<std::ptrdiff_t>(which - all.size());
        // Now and then one is lost, and so are those behind it.
        if (draw() % 8 == 0 || !carryOutLate(*late)) late_.erase(late);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(draw() % 20));
  }
}

void Fabric::unplugWire(const std::string& nic) {
  const std::lock_guard lock(mutex);
  nicOf(nic).cut = true;
}

void Fabric::tell(Context& context, const ibv_async_event& event) {
  context.events.push_back(event);
  const std::uint64_t one = 1;
  if (::write(context.context.async_fd, &one, sizeof(one)) != sizeof(one)) fault("an event could not be told");
}

void Fabric::portEvent(const std::string& nic, ibv_event_type event, int port) {
  const std::lock_guard lock(mutex);
  for (Context* context : nicOf(nic).contexts) tell(*context, {.element = {.port_num = port}, .event_type = event});
}

int Fabric::queuePairEvents(const std::string& nic, ibv_event_type event) {
  const std::lock_guard lock(mutex);
  for (const auto& [number, pair] : nicOf(nic).pairs) {
    tell(*reinterpret_cast<Context*>(pair->qp.context), {.element = {.qp = &pair->qp}, .event_type = event});
  }
  return static_cast<int>(nicOf(nic).pairs.size());
}

std::vector<FakeRegion> Fabric::regions(const std::string& nic) {
  const std::lock_guard lock(mutex);
  std::vector<FakeRegion> all;
  for (const auto& [key, region] : nicOf(nic).regions) {
    all.push_back({region->first, region->mr.length, region->access, region->call});
  }
  return all;
}

std::vector<ibv_qp_attr> Fabric::readyToReceive(const std::string& nic) {
  const std::lock_guard lock(mutex);
  std::vector<ibv_qp_attr> all;
  for (const auto& [number, pair] : nicOf(nic).pairs) all.push_back(pair->ready);
  return all;
}

std::vector<ibv_qp_init_attr> Fabric::queuePairs(const std::string& nic) {
  const std::lock_guard lock(mutex);
  std::vector<ibv_qp_init_attr> all;
  for (const auto& [number, pair] : nicOf(nic).pairs) all.push_back(pair->init);
  return all;
}

std::vector<std::uint32_t> Fabric::ece(const std::string& nic) {
  const std::lock_guard lock(mutex);
  std::vector<std::uint32_t> all;
  for (const auto& [number, pair] : nicOf(nic).pairs) all.push_back(pair->ece);
  return all;
}

std::vector<FakeWork> Fabric::work() {
  const std::lock_guard lock(mutex);
  return work_;
}

std::vector<std::string> Fabric::faults() {
  const std::lock_guard lock(mutex);
  return faults_;
}

}  // namespace tutti::test
