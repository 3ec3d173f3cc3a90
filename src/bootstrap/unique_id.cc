#include "bootstrap/unique_id.h"

#include <array>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "bootstrap/link/wire.h"

namespace tutti::bootstrap {
namespace {

constexpr std::array<char, 8> kIdMagic = {'T', 'U', 'T', 'T', 'I', 'i', 'd', '\n'};
constexpr std::uint16_t kFixedAddressFlag = 1;

struct IdLayout {
  std::array<char, 8> magic{};
  std::uint16_t version = 0;
  std::uint16_t flags = 0;
  Address root;
  Key secret{};
  std::int32_t parentSize = 0;
  std::int32_t padding = 0;
  std::uint64_t parentName = 0;
  std::array<std::byte, 32> zero{};
  std::uint64_t checksum = 0;  ///< of all bytes before: an id cut short or half copied is recognised
};
static_assert(sizeof(IdLayout) == sizeof(ncclUniqueId) && std::is_trivially_copyable_v<IdLayout>);

std::uint64_t checksumOf(const IdLayout& id) {
  return hashBytes(std::as_bytes(std::span(&id, 1)).first(offsetof(IdLayout, checksum)));
}

}  // namespace

ncclUniqueId encodeUniqueId(const UniqueId& id) {
  IdLayout layout;
  layout.magic = kIdMagic;
  layout.version = kProtocolVersion;
  layout.flags = id.fixedAddress ? kFixedAddressFlag : 0;
  layout.root = id.root;
  layout.secret = id.secret;
  layout.parentSize = id.parent.size;
  layout.parentName = id.parent.name;
  layout.checksum = checksumOf(layout);
  ncclUniqueId bytes;
  std::memcpy(&bytes, &layout, sizeof bytes);
  return bytes;
}

Result<UniqueId> decodeUniqueId(const ncclUniqueId& bytes) {
  IdLayout layout;
  std::memcpy(static_cast<void*>(&layout), &bytes, sizeof layout);
  if (layout.magic != kIdMagic) {
    return fail(ncclInvalidArgument,
                "Bootstrap: the ncclUniqueId was not made by this library's ncclGetUniqueId: was it passed to this "
                "process before use, and do all processes load the same library?");
  }
  if (layout.version != kProtocolVersion) {
    return fail(
        ncclInvalidUsage,
        "Bootstrap: the ncclUniqueId speaks bootstrap protocol {}, this library speaks {}: load the same library "
        "version in all processes",
        layout.version, kProtocolVersion);
  }
  if (layout.checksum != checksumOf(layout) || !layout.root.set()) {
    return fail(ncclInvalidArgument,
                "Bootstrap: the ncclUniqueId is damaged: all {} bytes must reach every rank unchanged", sizeof bytes);
  }
  return UniqueId{
      layout.root, layout.secret, (layout.flags & kFixedAddressFlag) != 0, {layout.parentSize, layout.parentName}};
}

}  // namespace tutti::bootstrap
