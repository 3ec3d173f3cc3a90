#include "transport/net/ib/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "base/settings/params.h"
#include "transport/net/ib/net.h"
#include "transport/net/ib/nic/devices.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/nic/survey.h"

namespace tutti::net::ib {

namespace {

class IbNetSource final : public plugin::NetSource {
 public:
  IbNetSource(const Params& settings, std::string sysfs) : settings_(settings), sysfs_(std::move(sysfs)) {}

  std::string_view name() const override { return "IB"; }

  Result<std::unique_ptr<plugin::Net>> open(const plugin::NetOpening& opening) override {
    IbOptions options = ibOptions(settings_, opening.trafficClass);
    options.gpuMemoryIsHost = opening.gpuMemoryIsHost;
    options.who = opening.who;
    std::shared_ptr<IbDevices> devices;
    {
      const std::lock_guard lock(mutex_);
      if (devices_ == nullptr) TRY(search(options));
      devices = devices_;
    }
    TRY(settleTraffic(*devices, opening));
    TRY(tcp::initSocketProofs());
    ASSIGN(const auto interfaces, tcp::listSocketDevices(settings_, "/sys/class/net"));
    if (interfaces.empty() && devices->count() > 0) {
      return fail(ncclSystemError, "NET/IB : No IP interface found. Ends of connections meet over IP first");
    }
    const tcp::SocketDevice control = interfaces.empty() ? tcp::SocketDevice{} : interfaces.front();
    tcp::SocketOptions controlOptions = tcp::socketOptions(settings_, control.vendor);
    controlOptions.streams = 0;
    controlOptions.threads = 0;
    announce(*devices, control);
    return std::unique_ptr<plugin::Net>(
        std::make_unique<IbNet>(std::move(devices), options, control, controlOptions, opening));
  }

 private:
  Status search(const IbOptions& options) {
    ASSIGN(IbSurvey survey, surveyIb(options, sysfs_));
    if (!survey.whyNot.empty()) info(kInit | kNet, "NET/IB : not used: {}", survey.whyNot);
    reportRefused(survey.found);
    devices_ = std::make_shared<IbDevices>(std::move(survey.found.ports));
    return {};
  }

  /// A container often has the devices of its host in sysfs and none that it may open: programs then run over sockets
  /// without anybody noticing.
  void reportRefused(const IbSearch& found) const {
    std::string all;
    for (const std::string& one : refusalsOf(found)) {
      info(kInit | kNet, "NET/IB : not used: {}", one);
      all += (all.empty() ? "" : "; ") + one;
    }
    if (!found.ports.empty() || all.find("ibv_open_device") == std::string::npos) return;
    warn(
        "NET/IB : This host has verbs devices, but none can be used: {}. In a container give it /dev/infiniband "
        "(--device=/dev/infiniband) and an unlimited memlock; NCCL_IB_DISABLE=1 does without",
        all);
  }

  /// Of this communicator: others may have others.
  Status settleTraffic(const IbDevices& devices, const plugin::NetOpening& opening) const {
    if (devices.count() == 0) return {};
    const std::string doubt = trafficDoubt(settings_, opening.trafficClass);
    // Another network may be taken then, slower than anybody expects: said at every level, as mistakes in calls are
    // not.
    if (!doubt.empty()) return fail(ncclSystemError, "NET/IB : {} does without this network: {}", opening.who, doubt);
    const auto& ports = devices.ports();
    const bool infiniband = std::any_of(ports.begin(), ports.end(), [](const IbPort& one) { return !one.ethernet; });
    // Such a port may be here, and not at the peers: no reason to do without the network.
    const std::string level = infiniband ? serviceLevelDoubt(settings_, opening.trafficClass) : std::string();
    if (!level.empty()) warn("NET/IB : {}: {}", opening.who, level);
    info(kInit | kNet, "NET/IB : {}: {}", opening.who, trafficText(settings_, opening.trafficClass));
    return {};
  }

  void announce(const IbDevices& devices, const tcp::SocketDevice& control) {
    const std::lock_guard lock(mutex_);
    if (announced_) return;
    announced_ = true;
    if (devices.count() == 0) return info(kInit | kNet, "NET/IB : No device found.");
    info(kInit | kNet, "NET/IB : Using {}; OOB {}", devices.text(), control.interface.text());
  }

  Params settings_;
  std::string sysfs_;
  std::mutex mutex_;
  std::shared_ptr<IbDevices> devices_;  ///< null: not looked for yet
  bool announced_ = false;
};

}  // namespace

std::unique_ptr<plugin::NetSource> ibNetSource(const Params& settings, std::string sysfs) {
  return std::make_unique<IbNetSource>(settings, std::move(sysfs));
}

}  // namespace tutti::net::ib
