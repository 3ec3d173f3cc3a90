// One NIC of the verbs, opened: its domain, its registrations, what it says on its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/net/ib/nic/gid.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

class NicEvents;
class NicHealth;
class Registrations;

/// Whether a NIC's GPU memory may come as a dma-buf.
struct DmaBufAnswer {
  bool taken = false;
  std::string why;  ///< not taken: "ibv_reg_dmabuf_mr: Operation not supported"
};

/// Shared by all communicators of the process; closes when the last one is done with it. Any thread.
class Nic {
 public:
  /// `folder`: what the system says of verbs devices, /sys/class/infiniband. Null where it cannot be used: `*why` says
  /// so, and nothing is logged.
  static std::shared_ptr<Nic> open(const Verbs& verbs, ibv_device* device, bool relaxedOrdering,
                                   const std::string& folder, std::string* why);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  const Verbs& verbs() const { return verbs_; }
  const std::string& name() const { return name_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  Registrations& registrations() { return *registrations_; }
  NicHealth& health();
  const std::string& folder() const { return folder_; }  ///< its own, in sysfs

  /// Asks the NIC. Empty: it does not say.
  std::optional<ibv_port_attr> queryPort(int port) const;
  /// The entries of a port's table that are set and that queue pairs can name.
  std::vector<GidEntry> gids(int port, int length) const;
  /// As library and kernel say.
  const DmaBufAnswer& dmaBufs() const { return dmaBufs_; }

 private:
  Nic(const Verbs& verbs, ibv_context* context, std::string name, std::string folder);
  bool prepare(bool relaxedOrdering, std::string* why);
  /// Empty: this library or kernel cannot.
  std::optional<std::vector<GidEntry>> gidsAtOnce(int port, int length) const;
  std::vector<GidEntry> gidsOneByOne(int port, int length) const;

  const Verbs& verbs_;
  ibv_context* context_;
  std::string name_;
  std::string folder_;
  ibv_device_attr attributes_{};
  ibv_pd* domain_ = nullptr;
  DmaBufAnswer dmaBufs_;
  std::unique_ptr<Registrations> registrations_;
  std::unique_ptr<NicEvents> events_;
};

}  // namespace tutti::net::ib
