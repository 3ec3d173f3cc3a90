#include "transport/net/ib/nic/verbs.h"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/dl.h"
#include "base/never_destroyed.h"

namespace tutti::net::ib {

namespace {

/// Versions of symbols: an older one of the same name takes other structures.
constexpr const char* kFirst = "IBVERBS_1.1";

struct Wanted {
  void** place;
  const char* name;
  const char* version;
  bool required;
};

template <class F>
Wanted required(F& place, const char* name) {
  return {reinterpret_cast<void**>(&place), name, kFirst, true};
}
template <class F>
Wanted optional(F& place, const char* name, const char* version) {
  return {reinterpret_cast<void**>(&place), name, version, false};
}

std::vector<Wanted> wantedOf(Verbs& verbs) {
  return {required(verbs.get_device_list, "ibv_get_device_list"),
          required(verbs.free_device_list, "ibv_free_device_list"),
          required(verbs.get_device_name, "ibv_get_device_name"),
          required(verbs.open_device, "ibv_open_device"),
          required(verbs.close_device, "ibv_close_device"),
          required(verbs.get_async_event, "ibv_get_async_event"),
          required(verbs.ack_async_event, "ibv_ack_async_event"),
          required(verbs.query_device, "ibv_query_device"),
          required(verbs.query_port, "ibv_query_port"),
          required(verbs.query_gid, "ibv_query_gid"),
          required(verbs.query_qp, "ibv_query_qp"),
          required(verbs.alloc_pd, "ibv_alloc_pd"),
          required(verbs.dealloc_pd, "ibv_dealloc_pd"),
          required(verbs.reg_mr, "ibv_reg_mr"),
          required(verbs.dereg_mr, "ibv_dereg_mr"),
          required(verbs.create_cq, "ibv_create_cq"),
          required(verbs.destroy_cq, "ibv_destroy_cq"),
          required(verbs.create_qp, "ibv_create_qp"),
          required(verbs.modify_qp, "ibv_modify_qp"),
          required(verbs.destroy_qp, "ibv_destroy_qp"),
          required(verbs.fork_init, "ibv_fork_init"),
          required(verbs.event_type_str, "ibv_event_type_str"),
          optional(verbs.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8"),
          optional(verbs.query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11"),
          optional(verbs.query_ece, "ibv_query_ece", "IBVERBS_1.10"),
          optional(verbs.set_ece, "ibv_set_ece", "IBVERBS_1.10"),
          optional(verbs.reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12")};
}

struct Opened {
  Verbs verbs;
  std::string why;  ///< not "": it cannot be used
};

std::string fill(Verbs& verbs, const DlLibrary& library) {
  for (const Wanted& one : wantedOf(verbs)) {
    *one.place = ::dlvsym(library.get(), one.name, one.version);
    if (*one.place == nullptr && one.required) {
      return fmt::format("{} has no {} of version {}", library.path(), one.name, one.version);
    }
  }
  return {};
}

DlLibrary openAny(const std::string& name, std::string& why) {
  if (!name.empty()) return DlLibrary::open(name, &why);
  DlLibrary library = DlLibrary::open("libibverbs.so.1", &why);
  return library.valid() ? std::move(library) : DlLibrary::open("libibverbs.so");
}

std::unique_ptr<Opened> open(const std::string& name) {
  auto opened = std::make_unique<Opened>();
  DlLibrary library = openAny(name, opened->why);
  if (!library.valid()) return opened;
  opened->why = fill(opened->verbs, library);
  // What is registered must not be copied on write when the process forks. Fails where something was registered
  // before, or where the kernel copies at the fork itself.
  if (opened->why.empty()) opened->verbs.fork_init();
  library.leak();
  return opened;
}

}  // namespace

const Verbs* openVerbs(const std::string& name, std::string* why) {
  struct Libraries {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Opened>> byName;
  };
  static NeverDestroyed<Libraries> libraries;
  const std::lock_guard lock(libraries.get().mutex);
  std::unique_ptr<Opened>& opened = libraries.get().byName[name];
  if (opened == nullptr) opened = open(name);
  *why = opened->why;
  return opened->why.empty() ? &opened->verbs : nullptr;
}

}  // namespace tutti::net::ib
