// The verbs library, opened at run time: a machine without it loses nothing but this network.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti::net::ib {

/// The functions of libibverbs.so.1 that are used, under their names without "ibv_" ("_ibv_"). What is posted and
/// polled goes through the operations in contexts and queue pairs, as the inline functions of the public header do.
struct Verbs {
  ibv_device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv_device** list) = nullptr;
  const char* (*get_device_name)(ibv_device* device) = nullptr;
  ibv_context* (*open_device)(ibv_device* device) = nullptr;
  int (*close_device)(ibv_context* context) = nullptr;
  int (*get_async_event)(ibv_context* context, ibv_async_event* event) = nullptr;
  void (*ack_async_event)(ibv_async_event* event) = nullptr;
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes) = nullptr;
  /// Fills what the first version of ibv_port_attr had; the caller clears the rest.
  int (*query_port)(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) = nullptr;
  int (*query_gid)(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) = nullptr;
  int (*query_qp)(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context* context) = nullptr;
  int (*dealloc_pd)(ibv_pd* domain) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd* domain, void* address, std::size_t bytes, int access) = nullptr;
  int (*dereg_mr)(ibv_mr* region) = nullptr;
  ibv_cq* (*create_cq)(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) = nullptr;
  int (*destroy_cq)(ibv_cq* queue) = nullptr;
  ibv_qp* (*create_qp)(ibv_pd* domain, ibv_qp_init_attr* attributes) = nullptr;
  int (*modify_qp)(ibv_qp* qp, ibv_qp_attr* attributes, int mask) = nullptr;
  int (*destroy_qp)(ibv_qp* qp) = nullptr;
  int (*fork_init)() = nullptr;
  const char* (*event_type_str)(ibv_event_type event) = nullptr;

  // Of newer libraries; null where there is none.
  ibv_mr* (*reg_mr_iova2)(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t iova,
                          unsigned access) = nullptr;
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t iova, int fd,
                           int access) = nullptr;
  /// All entries of all ports that are set, in one call: their number, or -errno.
  ssize_t (*query_gid_table)(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                             std::size_t entryBytes) = nullptr;
  int (*query_ece)(ibv_qp* qp, ibv_ece* options) = nullptr;
  int (*set_ece)(ibv_qp* qp, ibv_ece* options) = nullptr;
};

/// Opens the library `name` ("": libibverbs.so.1, then libibverbs.so), once per process and name; it stays open. Null
/// where it cannot be used: `*why` then says so. Any thread.
const Verbs* openVerbs(const std::string& name, std::string* why);

}  // namespace tutti::net::ib
