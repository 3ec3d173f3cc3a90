// The functions of the verbs library for tests, under the names and versions of libibverbs.
#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/net/ib/fake_fabric.h"

// The public header makes macros of some of the names: functions get them behind its back.
#define SYMBOL(name) __asm__("ibv_" #name) __attribute__((visibility("default")))

namespace tutti::test {
namespace {

bool fails(const char* function) {
  const int error = fabric().failing(function);
  if (error != 0) errno = error;
  return error != 0;
}

int postSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (fails("ibv_post_send")) return errno;
  const std::lock_guard lock(fabric().mutex);
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (const int error = fabric().post(*reinterpret_cast<Pair*>(qp), *wr); error != 0) return error;
  }
  return 0;
}

int postRecv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (fails("ibv_post_recv")) return errno;
  const std::lock_guard lock(fabric().mutex);
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (const int error = fabric().post(*reinterpret_cast<Pair*>(qp), *wr); error != 0) return error;
  }
  return 0;
}

int pollCq(ibv_cq* cq, int count, ibv_wc* room) {
  const std::lock_guard lock(fabric().mutex);
  return fabric().poll(*reinterpret_cast<Queue*>(cq), {room, static_cast<std::size_t>(count)});
}

NicState& nicOf(const ibv_context* context) {
  return *reinterpret_cast<const Context*>(context)->nic;
}

ibv_mr* addRegion(ibv_pd* pd, std::unique_ptr<Region> region, std::uintptr_t first, std::size_t bytes, unsigned access,
                  const char* call) {
  const std::lock_guard lock(fabric().mutex);
  NicState& nic = nicOf(pd->context);
  region->mr.context = pd->context;
  region->mr.pd = pd;
  region->mr.addr = reinterpret_cast<void*>(first);
  region->mr.length = bytes - std::min(bytes, nic.is.registersLess);
  region->mr.lkey = nic.nextKey++;
  region->mr.rkey = region->mr.lkey | kRemoteKeyBit;
  region->first = first;
  region->access = access;
  region->call = call;
  nic.regions[region->mr.lkey] = region.get();
  ++fabric().live.regions;
  return &region.release()->mr;
}

/// The words of the real library.
const char* nameOf(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_CQ_ERR:
      return "CQ error";
    case IBV_EVENT_QP_FATAL:
      return "local work queue catastrophic error";
    case IBV_EVENT_QP_REQ_ERR:
      return "invalid request local work queue error";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "local access violation work queue error";
    case IBV_EVENT_DEVICE_FATAL:
      return "local catastrophic error";
    case IBV_EVENT_PORT_ERR:
      return "port error";
    case IBV_EVENT_PORT_ACTIVE:
      return "port active";
    case IBV_EVENT_LID_CHANGE:
      return "LID change";
    case IBV_EVENT_PKEY_CHANGE:
      return "P_Key change";
    case IBV_EVENT_SM_CHANGE:
      return "SM change";
    case IBV_EVENT_CLIENT_REREGISTER:
      return "client reregistration";
    case IBV_EVENT_GID_CHANGE:
      return "GID table change";
    case IBV_EVENT_PATH_MIG:
      return "path migrated";
    case IBV_EVENT_PATH_MIG_ERR:
      return "path migration request error";
    case IBV_EVENT_COMM_EST:
      return "communication established";
    case IBV_EVENT_SQ_DRAINED:
      return "send queue drained";
    case IBV_EVENT_SRQ_ERR:
      return "SRQ catastrophic error";
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return "SRQ limit reached";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "last WQE reached";
    case IBV_EVENT_WQ_FATAL:
      return "WQ fatal";
    default:
      return "unknown";
  }
}

}  // namespace

bool isOfQueuePair(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return true;
    default:
      return false;
  }
}

}  // namespace tutti::test

using namespace tutti::test;

__attribute__((visibility("default"))) FakeVerbs* tuttiFakeVerbs() {
  return &fabric();
}

extern "C" {

ibv_device** getDeviceList(int* count) SYMBOL(get_device_list);
void freeDeviceList(ibv_device** list) SYMBOL(free_device_list);
const char* getDeviceName(ibv_device* device) SYMBOL(get_device_name);
ibv_context* openDevice(ibv_device* device) SYMBOL(open_device);
int closeDevice(ibv_context* context) SYMBOL(close_device);
int getAsyncEvent(ibv_context* context, ibv_async_event* event) SYMBOL(get_async_event);
void ackAsyncEvent(ibv_async_event* event) SYMBOL(ack_async_event);
int queryDevice(ibv_context* context, ibv_device_attr* attributes) SYMBOL(query_device);
int queryPort(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) SYMBOL(query_port);
int queryGid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) SYMBOL(query_gid);
ssize_t queryGidTable(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                      std::size_t entryBytes) __asm__("_ibv_query_gid_table") __attribute__((visibility("default")));
int queryQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init) SYMBOL(query_qp);
ibv_pd* allocPd(ibv_context* context) SYMBOL(alloc_pd);
int deallocPd(ibv_pd* pd) SYMBOL(dealloc_pd);
ibv_mr* regMr(ibv_pd* pd, void* address, std::size_t bytes, int access) SYMBOL(reg_mr);
ibv_mr* regMrIova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, unsigned access)
    SYMBOL(reg_mr_iova2);
ibv_mr* regDmabufMr(ibv_pd* pd, std::uint64_t offset, std::size_t bytes, std::uint64_t iova, int fd, int access)
    SYMBOL(reg_dmabuf_mr);
int deregMr(ibv_mr* mr) SYMBOL(dereg_mr);
ibv_cq* createCq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector)
    SYMBOL(create_cq);
int destroyCq(ibv_cq* cq) SYMBOL(destroy_cq);
ibv_qp* createQp(ibv_pd* pd, ibv_qp_init_attr* init) SYMBOL(create_qp);
int modifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) SYMBOL(modify_qp);
int destroyQp(ibv_qp* qp) SYMBOL(destroy_qp);
int forkInit() SYMBOL(fork_init);
const char* eventTypeStr(ibv_event_type event) SYMBOL(event_type_str);
int queryEce(ibv_qp* qp, ibv_ece* options) SYMBOL(query_ece);
int setEce(ibv_qp* qp, ibv_ece* options) SYMBOL(set_ece);

ibv_device** getDeviceList(int* count) {
  if (fails("ibv_get_device_list")) return nullptr;
  const std::lock_guard lock(fabric().mutex);
  auto** const list = new ibv_device*[fabric().nics.size() + 1]();
  for (std::size_t i = 0; i < fabric().nics.size(); ++i) list[i] = &fabric().nics[i]->device;
  *count = static_cast<int>(fabric().nics.size());
  ++fabric().live.lists;
  return list;
}

void freeDeviceList(ibv_device** list) {
  const std::lock_guard lock(fabric().mutex);
  --fabric().live.lists;
  delete[] list;
}

const char* getDeviceName(ibv_device* device) {
  return device->name;
}

ibv_context* openDevice(ibv_device* device) {
  if (fails("ibv_open_device")) return nullptr;
  const std::lock_guard lock(fabric().mutex);
  NicState& nic = fabric().nicOf(device->name);
  if (nic.is.openError != 0) {
    errno = nic.is.openError;
    return nullptr;
  }
  auto made = std::make_unique<Context>();
  made->nic = &nic;
  made->context.device = device;
  made->context.async_fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  made->context.ops.post_send = postSend;
  made->context.ops.post_recv = postRecv;
  made->context.ops.poll_cq = pollCq;
  nic.contexts.insert(made.get());
  ++fabric().live.contexts;
  return &made.release()->context;
}

int closeDevice(ibv_context* context) {
  const std::lock_guard lock(fabric().mutex);
  nicOf(context).contexts.erase(reinterpret_cast<Context*>(context));
  --fabric().live.contexts;
  ::close(context->async_fd);
  delete reinterpret_cast<Context*>(context);
  return 0;
}

int getAsyncEvent(ibv_context* context, ibv_async_event* event) {
  std::uint64_t one = 0;
  if (::read(context->async_fd, &one, sizeof(one)) != sizeof(one)) return -1;
  const std::lock_guard lock(fabric().mutex);
  auto& events = reinterpret_cast<Context*>(context)->events;
  if (events.empty()) {
    errno = EAGAIN;
    return -1;
  }
  *event = events.front();
  events.pop_front();
  if (isOfQueuePair(event->event_type)) ++reinterpret_cast<Pair*>(event->element.qp)->unacknowledged;
  return 0;
}

void ackAsyncEvent(ibv_async_event* event) {
  const std::lock_guard lock(fabric().mutex);
  if (isOfQueuePair(event->event_type)) --reinterpret_cast<Pair*>(event->element.qp)->unacknowledged;
  fabric().acknowledged.notify_all();
}

int queryDevice(ibv_context* context, ibv_device_attr* attributes) {
  if (fails("ibv_query_device")) return errno;
  const FakeNic& nic = nicOf(context).is;
  *attributes = {};
  attributes->phys_port_cnt = static_cast<std::uint8_t>(nic.ports.size());
  attributes->max_qp = nic.maxQueuePairs;
  attributes->max_cqe = 32767;
  attributes->sys_image_guid = nic.guid;
  return 0;
}

int queryPort(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  if (fails("ibv_query_port")) return errno;
  const std::lock_guard lock(fabric().mutex);
  const FakePort& is = nicOf(context).is.ports[port - 1u];
  attributes->state = is.state;
  attributes->active_mtu = is.mtu;
  attributes->lid = is.lid;
  attributes->gid_tbl_len = static_cast<int>(is.gids.size());
  attributes->active_speed = static_cast<std::uint8_t>(is.speed);
  attributes->active_width = static_cast<std::uint8_t>(is.width);
  attributes->flags = is.flags;
  attributes->link_layer = is.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int queryGid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  if (fails("ibv_query_gid")) return -1;
  const std::lock_guard lock(fabric().mutex);
  const FakePort& is = nicOf(context).is.ports[port - 1u];
  *gid = {};
  ::inet_pton(AF_INET6, is.gids[static_cast<std::size_t>(index)].address.c_str(), gid->raw);
  return 0;
}

ssize_t queryGidTable(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t, std::size_t) {
  if (fails("_ibv_query_gid_table")) return -errno;
  const std::lock_guard lock(fabric().mutex);
  const FakeNic& nic = nicOf(context).is;
  if (!nic.gidTables) return -EOPNOTSUPP;
  std::size_t count = 0;
  for (std::size_t port = 0; port < nic.ports.size(); ++port) {
    for (std::size_t index = 0; index < nic.ports[port].gids.size(); ++index) {
      const FakeGid& gid = nic.ports[port].gids[index];
      if (gid.address.empty()) continue;
      if (count == most) return -EINVAL;
      ibv_gid_entry& entry = entries[count++];
      entry = {};
      ::inet_pton(AF_INET6, gid.address.c_str(), entry.gid.raw);
      entry.gid_index = static_cast<std::uint32_t>(index);
      entry.port_num = static_cast<std::uint32_t>(port + 1);
      entry.gid_type = static_cast<std::uint32_t>(gid.roceVersion);
    }
  }
  return static_cast<ssize_t>(count);
}

int queryQp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  attributes->qp_state = qp->state;
  return 0;
}

ibv_pd* allocPd(ibv_context* context) {
  if (fails("ibv_alloc_pd")) return nullptr;
  const std::lock_guard lock(fabric().mutex);
  ++fabric().live.domains;
  return new ibv_pd{.context = context, .handle = 0};
}

int deallocPd(ibv_pd* pd) {
  const std::lock_guard lock(fabric().mutex);
  --fabric().live.domains;
  delete pd;
  return 0;
}

ibv_mr* regMr(ibv_pd* pd, void* address, std::size_t bytes, int access) {
  if (fails("ibv_reg_mr")) return nullptr;
  auto region = std::make_unique<Region>();
  region->base = static_cast<char*>(address);
  return addRegion(pd, std::move(region), reinterpret_cast<std::uintptr_t>(address), bytes,
                   static_cast<unsigned>(access), "ibv_reg_mr");
}

ibv_mr* regMrIova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
  if (fails("ibv_reg_mr_iova2")) return nullptr;
  auto region = std::make_unique<Region>();
  region->base = static_cast<char*>(address);
  return addRegion(pd, std::move(region), iova, bytes, access, "ibv_reg_mr_iova2");
}

ibv_mr* regDmabufMr(ibv_pd* pd, std::uint64_t offset, std::size_t bytes, std::uint64_t iova, int fd, int access) {
  const bool can = nicOf(pd->context).is.dmaBufs;
  struct stat about {};
  if (!can || ::fstat(fd, &about) != 0) {
    errno = can ? EBADF : EOPNOTSUPP;
    return nullptr;
  }
  if (fails("ibv_reg_dmabuf_mr")) return nullptr;
  if (offset % 4096 != iova % 4096 || offset + bytes > static_cast<std::uint64_t>(about.st_size)) {
    errno = EINVAL;
    return nullptr;
  }
  const std::size_t before = offset % 4096;
  auto region = std::make_unique<Region>();
  region->mapped = bytes + before;
  region->mapping =
      ::mmap(nullptr, region->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset - before));
  if (region->mapping == MAP_FAILED) return nullptr;
  region->base = static_cast<char*>(region->mapping) + before;
  return addRegion(pd, std::move(region), iova, bytes, static_cast<unsigned>(access), "ibv_reg_dmabuf_mr");
}

int deregMr(ibv_mr* mr) {
  if (fails("ibv_dereg_mr")) return errno;
  const std::lock_guard lock(fabric().mutex);
  NicState& nic = nicOf(mr->context);
  for (const auto& [number, pair] : nic.pairs) {
    for (const Work& work : pair->kept) {
      for (const ibv_sge& part : work.parts) {
        if (part.lkey == mr->lkey) fabric().fault("memory was given back under work");
      }
    }
  }
  nic.regions.erase(mr->lkey);
  --fabric().live.regions;
  const std::unique_ptr<Region> region(reinterpret_cast<Region*>(mr));
  if (region->mapping != nullptr) ::munmap(region->mapping, region->mapped);
  return 0;
}

ibv_cq* createCq(ibv_context* context, int entries, void*, ibv_comp_channel*, int) {
  if (fails("ibv_create_cq")) return nullptr;
  const std::lock_guard lock(fabric().mutex);
  auto made = std::make_unique<Queue>();
  made->cq.context = context;
  made->cq.cqe = entries;
  ++fabric().live.queues;
  nicOf(context).queues.insert(made.get());
  return &made.release()->cq;
}

int destroyCq(ibv_cq* cq) {
  const std::lock_guard lock(fabric().mutex);
  for (const auto& [number, pair] : nicOf(cq->context).pairs) {
    if (pair->init.send_cq == cq || pair->init.recv_cq == cq)
      fabric().fault("a completion queue went before its users");
  }
  --fabric().live.queues;
  nicOf(cq->context).queues.erase(reinterpret_cast<Queue*>(cq));
  delete reinterpret_cast<Queue*>(cq);
  return 0;
}

ibv_qp* createQp(ibv_pd* pd, ibv_qp_init_attr* init) {
  if (fails("ibv_create_qp")) return nullptr;
  const std::lock_guard lock(fabric().mutex);
  NicState& nic = nicOf(pd->context);
  auto made = std::make_unique<Pair>();
  made->init = *init;
  made->nic = &nic;
  made->qp.context = pd->context;
  made->qp.pd = pd;
  made->qp.qp_num = nic.nextNumber++;
  made->qp.state = IBV_QPS_RESET;
  nic.pairs[made->qp.qp_num] = made.get();
  ++fabric().live.queuePairs;
  return &made.release()->qp;
}

int modifyQp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (fails("ibv_modify_qp")) return errno;
  const std::lock_guard lock(fabric().mutex);
  return fabric().modify(*reinterpret_cast<Pair*>(qp), *attributes, mask);
}

/// Waits until all that was said of it has been acknowledged.
int destroyQp(ibv_qp* qp) {
  std::unique_lock lock(fabric().mutex);
  auto* const pair = reinterpret_cast<Pair*>(qp);
  fabric().forget(*pair);
  fabric().acknowledged.wait(lock, [&] { return pair->unacknowledged == 0; });
  pair->nic->pairs.erase(qp->qp_num);
  --fabric().live.queuePairs;
  delete pair;
  return 0;
}

int forkInit() {
  return fails("ibv_fork_init") ? errno : 0;
}

const char* eventTypeStr(ibv_event_type event) {
  return nameOf(event);
}

/// Before RTR what the NIC could, after it what it does.
int queryEce(ibv_qp* qp, ibv_ece* options) {
  if (fails("ibv_query_ece")) return errno;
  const std::lock_guard lock(fabric().mutex);
  const auto* const pair = reinterpret_cast<Pair*>(qp);
  if (pair->nic->is.ece == 0) return EOPNOTSUPP;
  const bool stands = qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS;
  *options = {.vendor_id = 0x15b3, .options = stands ? pair->ece : pair->nic->is.ece, .comp_mask = 0};
  return 0;
}

int setEce(ibv_qp* qp, ibv_ece* options) {
  if (fails("ibv_set_ece")) return errno;
  const std::lock_guard lock(fabric().mutex);
  auto* const pair = reinterpret_cast<Pair*>(qp);
  if (pair->nic->is.ece == 0) return EOPNOTSUPP;
  if (qp->state != IBV_QPS_INIT || options->vendor_id != 0x15b3) {
    fabric().fault("ibv_set_ece: not in INIT, or of another vendor");
    return EINVAL;
  }
  pair->ece = options->options & pair->nic->is.ece;
  return 0;
}

}  // extern "C"
