#include "transport/net/ib/nic/nic.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "transport/net/ib/nic/events.h"
#include "transport/net/ib/nic/registrations.h"

namespace tutti::net::ib {

namespace {

/// Entries of a port's table that queue pairs can name, which they do by a byte.
constexpr std::uint32_t kNameable = 256;
// What GidEntry calls RoCE versions.
static_assert(IBV_GID_TYPE_IB == 0 && IBV_GID_TYPE_ROCE_V1 == 1 && IBV_GID_TYPE_ROCE_V2 == 2);

/// The text in `file`, without its end of line; "" where it cannot be read: an empty entry of a table is such a file.
std::string lineOf(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

int roceVersionOf(const std::string& text) {
  if (text == "IB/RoCE v1" || text == "RoCE v1") return 1;
  return text == "RoCE v2" ? 2 : 0;
}

/// Registers nothing: what the kernel answers to a descriptor that is none tells whether it knows the call.
DmaBufAnswer askForDmaBufs(const Verbs& verbs, ibv_pd* domain) {
  if (verbs.reg_dmabuf_mr == nullptr) return {false, "this libibverbs has no ibv_reg_dmabuf_mr: update rdma-core"};
  errno = 0;
  ibv_mr* const region = verbs.reg_dmabuf_mr(domain, 0, 0, 0, -1, 0);
  const int error = errno;
  if (region != nullptr) verbs.dereg_mr(region);
  if (region != nullptr || (error != EOPNOTSUPP && error != EPROTONOSUPPORT)) return {true, {}};
  return {false, fmt::format("ibv_reg_dmabuf_mr: {}: its driver or the kernel takes none", errnoText(error))};
}

}  // namespace

Nic::Nic(const Verbs& verbs, ibv_context* context, std::string name, std::string folder)
    : verbs_(verbs), context_(context), name_(std::move(name)), folder_(std::move(folder)) {}

std::shared_ptr<Nic> Nic::open(const Verbs& verbs, ibv_device* device, bool relaxedOrdering, const std::string& folder,
                               std::string* why) {
  const std::string name = verbs.get_device_name(device);
  errno = 0;
  ibv_context* const context = verbs.open_device(device);
  if (context == nullptr) {
    *why = fmt::format("ibv_open_device: {}", errnoText(errno));
    return nullptr;
  }
  std::shared_ptr<Nic> nic(new Nic(verbs, context, name, fmt::format("{}/{}", folder, name)));
  return nic->prepare(relaxedOrdering, why) ? nic : nullptr;
}

bool Nic::prepare(bool relaxedOrdering, std::string* why) {
  if (const int error = verbs_.query_device(context_, &attributes_); error != 0) {
    *why = fmt::format("ibv_query_device: {}", errnoText(error));
    return false;
  }
  errno = 0;
  domain_ = verbs_.alloc_pd(context_);
  if (domain_ == nullptr) {
    const int error = errno;
    *why = fmt::format("ibv_alloc_pd: {}{}", errnoText(error), memlockRemedy(error, 0, 0));
    return false;
  }
  dmaBufs_ = askForDmaBufs(verbs_, domain_);
  registrations_ = std::make_unique<Registrations>(verbs_, domain_, name_, relaxedOrdering);
  events_ = NicEvents::hear(verbs_, context_, name_, why);
  return events_ != nullptr;
}

Nic::~Nic() {
  events_.reset();
  registrations_.reset();
  if (domain_ != nullptr) verbs_.dealloc_pd(domain_);
  verbs_.close_device(context_);
}

NicHealth& Nic::health() {
  return events_->health();
}

std::optional<ibv_port_attr> Nic::queryPort(int port) const {
  ibv_port_attr attributes{};
  if (verbs_.query_port(context_, static_cast<std::uint8_t>(port), &attributes) != 0) return std::nullopt;
  return attributes;
}

std::vector<GidEntry> Nic::gids(int port, int length) const {
  if (auto table = gidsAtOnce(port, length)) return std::move(*table);
  return gidsOneByOne(port, length);
}

/// Tables may have a thousand entries, most of which are empty, and each question is a call of the system.
std::optional<std::vector<GidEntry>> Nic::gidsAtOnce(int port, int length) const {
  if (verbs_.query_gid_table == nullptr) return std::nullopt;
  std::vector<ibv_gid_entry> all(static_cast<std::size_t>(length) * attributes_.phys_port_cnt + 1);
  const ssize_t count = verbs_.query_gid_table(context_, all.data(), all.size(), 0, sizeof(ibv_gid_entry));
  if (count < 0) return std::nullopt;
  all.resize(static_cast<std::size_t>(count));
  std::vector<GidEntry> table;
  for (const ibv_gid_entry& one : all) {
    if (one.port_num != static_cast<std::uint32_t>(port) || one.gid_index >= kNameable) continue;
    GidEntry entry{.index = static_cast<int>(one.gid_index), .roceVersion = static_cast<int>(one.gid_type)};
    std::memcpy(entry.gid.data(), one.gid.raw, entry.gid.size());
    if (!isZero(entry.gid)) table.push_back(entry);
  }
  std::sort(table.begin(), table.end(), [](const GidEntry& a, const GidEntry& b) { return a.index < b.index; });
  return table;
}

std::vector<GidEntry> Nic::gidsOneByOne(int port, int length) const {
  std::vector<GidEntry> table;
  for (int index = 0; index < std::min(length, static_cast<int>(kNameable)); ++index) {
    ibv_gid gid{};
    if (verbs_.query_gid(context_, static_cast<std::uint8_t>(port), index, &gid) != 0) continue;
    GidEntry entry{.index = index};
    std::memcpy(entry.gid.data(), gid.raw, entry.gid.size());
    if (isZero(entry.gid)) continue;
    entry.roceVersion = roceVersionOf(lineOf(fmt::format("{}/ports/{}/gid_attrs/types/{}", folder_, port, index)));
    table.push_back(entry);
  }
  return table;
}

}  // namespace tutti::net::ib
