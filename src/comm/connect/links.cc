#include "comm/connect/links.h"

namespace tutti::comm {

std::vector<LinkRequest> linksOf(const PlanNeeds& needs, const Neighbours& neighbours) {
  std::vector<LinkRequest> links;
  forEachLink(needs, neighbours, [&](const LinkRequest& link) { addLink(links, neighbours.rank, link); });
  return links;
}

}  // namespace tutti::comm
