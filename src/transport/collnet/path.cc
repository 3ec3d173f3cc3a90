#include "transport/collnet/path.h"

#include <fmt/format.h>

#include "base/log.h"
#include "transport/common/ranks.h"

namespace tutti::collnet {

std::string CollNetPath::brief() const {
  return fmt::format("rail {} by {}", rail, description);
}

std::string CollNetPath::text() const {
  return fmt::format("CollNet of {}, {}", transport::rankText(self), brief());
}

Status failCollNet(const CollNetPath& path, Status cause, std::string_view call) {
  const std::string said = lastErrorText();
  return fail(cause.code(),
              "{} failed in {}: {}. Other nodes' first errors may say why; NCCL_COLLNET_ENABLE=0 does without such a "
              "network",
              path.text(), call, said.empty() ? "the network gave no reason" : said);
}

}  // namespace tutti::collnet
