// An end of a connection that a host thread drives, as the test says.
#pragma once

#include <string_view>

#include "proxy/fakes.h"
#include "transport/common/transport.h"

namespace tutti::test {

class DrivenEnd final : public transport::Endpoint {
 public:
  transport::ConnectHandle handle() const override { return {}; }
  Status connect(const transport::ConnectHandle&) override { return {}; }
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override { return true; }
  transport::ConnView view() const override { return device::SendConn{}; }
  proxy::ProgressTask* task() override { return &work; }
  std::string_view description() const override { return "driven"; }

  FakeTask work;
};

}  // namespace tutti::test
