// The sending end of a connection whose way is chosen when the receiver has said at which NIC it is.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "transport/common/transport.h"
#include "transport/net/endpoint/endpoint.h"

namespace tutti::net::pxn {

/// Becomes a NetEndpoint or a RelayEndpoint in connect(). See transport.h.
class RoutedSender final : public transport::Endpoint {
 public:
  /// `context.options.routing` is needed.
  RoutedSender(const net::EndContext& context, const transport::LinkSpec& link)
      : device_(context.device),
        net_(context.net),
        options_(context.options),
        commons_(context.commons),
        lent_(context.lent),
        link_(link) {}
  transport::ConnectHandle handle() const override;
  Status connect(const transport::ConnectHandle& peer) override;
  Result<bool> ready() override;
  bool calls() const override { return inner_ != nullptr && inner_->calls(); }
  Result<bool> meet() override { return inner_->meet(); }
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override;
  transport::ConnView view() const override { return inner_->view(); }
  proxy::ProgressTask* task() override { return inner_ == nullptr ? nullptr : inner_->task(); }
  std::string_view description() const override { return inner_ == nullptr ? "NET" : inner_->description(); }
  bool eachEndReports() const override { return true; }
  bool shareable() const override { return false; }

 private:
  Status connectDirectly(const EndPlace& place, const transport::ConnectHandle& peer);

  const gpu::Device& device_;
  plugin::Net& net_;
  NetTransportOptions options_;
  net::NetCommons& commons_;
  LentPools& lent_;
  transport::LinkSpec link_;
  std::unique_ptr<transport::Endpoint> inner_;  ///< null before connect()
};

}  // namespace tutti::net::pxn
