#include "transport/net/ib/nic/survey.h"

#include "base/log.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

Result<IbSurvey> surveyIb(const IbOptions& options, const std::string& folder) {
  IbSurvey survey;
  if (options.disabled) {
    survey.whyNot = "NCCL_IB_DISABLE is set";
    return survey;
  }
  const Verbs* const verbs = openVerbs(options.library, &survey.whyNot);
  if (verbs == nullptr) return survey;
  ASSIGN(survey.found, searchIbPorts(*verbs, options, folder));
  return survey;
}

}  // namespace tutti::net::ib
