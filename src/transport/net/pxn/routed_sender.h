// The sending end of a connection whose way is chosen when the receiver has said at which NIC it is.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "transport/net/endpoint/endpoint.h"
#include "transport/common/transport.h"

namespace tutti::relay {

/// Becomes a NetEndpoint or a RelayEndpoint in connect(). See transport.h.
class RoutedSender final : public Endpoint {
 public:
  /// `context.options.routing` is needed.
  RoutedSender(const net::EndContext& context, const LinkSpec& link)
      : device_(context.device),
        net_(context.net),
        options_(context.options),
        pools_(context.pools),
        lent_(context.lent),
        joins_(context.joins),
        link_(link) {}
  ConnectHandle handle() const override;
  Status connect(const ConnectHandle& peer) override;
  Result<bool> ready() override;
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override;
  ConnView view() const override { return inner_->view(); }
  ProgressTask* task() override { return inner_ == nullptr ? nullptr : inner_->task(); }
  std::string_view description() const override { return inner_ == nullptr ? "NET" : inner_->description(); }
  bool eachEndReports() const override { return true; }

 private:
  Status connectDirectly(const EndPlace& place, const ConnectHandle& peer);

  const Device& device_;
  Net& net_;
  NetTransportOptions options_;
  net::SharedPools& pools_;
  LentPools& lent_;
  net::SharedJoins& joins_;
  LinkSpec link_;
  std::unique_ptr<Endpoint> inner_;  ///< null before connect()
};

}  // namespace tutti::relay
