#include "ras/network/messages.h"

#include <algorithm>

namespace tutti::ras {

namespace {

using bootstrap::Key;
using Salt = std::array<std::byte, 16>;

constexpr std::string_view kTableLabel = "tutti ras table";
/// Communicators are smaller than this, and so is what they say.
constexpr std::int32_t kMostRanks = 1 << 24;

struct Entry {
  Address address;
  std::int32_t pid = 0;
  std::uint64_t id = 0;
  std::uint64_t hostHash = 0;
  std::uint64_t cudaDevices = 0;
  std::uint64_t nvmlDevices = 0;
  Key key{};
  std::uint64_t state = 0;
};
static_assert(sizeof(Entry) == 104);

struct Rank {
  std::int32_t rank = 0;
  std::int32_t cudaDevice = 0;
  std::int32_t nvmlDevice = 0;
  std::int32_t initState = 0;
  std::int32_t asyncError = 0;
  std::uint8_t flags = 0;
  std::int8_t lastFunc = -1;
  std::uint16_t zero = 0;
  OpCounts counts{};
  std::uint64_t lastBytes = 0;
  std::uint64_t lastSequence = 0;
  std::uint64_t lastAgeMs = 0;
};
static_assert(sizeof(Rank) == 128);
constexpr std::uint8_t kFinalizeCalled = 1;
constexpr std::uint8_t kDestroyFlag = 2;
constexpr std::uint8_t kAbortFlag = 4;
constexpr std::uint8_t kFlags = kFinalizeCalled | kDestroyFlag | kAbortFlag;

struct WireMember {
  std::uint64_t process = 0;
  std::int32_t cudaDevice = 0;
  std::int32_t nvmlDevice = 0;
};
static_assert(sizeof(WireMember) == 16);

struct CommHead {
  CommKey key;
  std::int32_t size = 0;
  std::uint32_t noteBytes = 0;  ///< of the parent's hash and the name, which follow; 0: it has neither
};
static_assert(sizeof(CommHead) == 32);
constexpr std::size_t kParentBytes = sizeof(CommFacts::parent);
constexpr std::size_t kLongestName = 256;

Key maskEntry(const Key& key, const Key& linkKey, const Salt& salt, std::uint32_t index) {
  std::array<std::byte, sizeof(Salt) + sizeof(index)> use;
  std::copy(salt.begin(), salt.end(), use.begin());
  std::memcpy(use.data() + salt.size(), &index, sizeof(index));
  return masked(key, linkKey, kTableLabel, use);
}

bool isAddress(const Address& address) {
  return address.family() == AF_INET || address.family() == AF_INET6;
}

Rank wireOf(const RankFacts& rank) {
  const RankState& state = rank.state;
  const auto flags =
      static_cast<std::uint8_t>((state.finalizeCalled ? kFinalizeCalled : 0) | (state.destroyFlag ? kDestroyFlag : 0) |
                                (state.abortFlag ? kAbortFlag : 0));
  return {rank.rank,
          rank.cudaDevice,
          rank.nvmlDevice,
          state.initState,
          state.asyncError,
          flags,
          state.lastOp.func,
          0,
          state.counts,
          state.lastOp.bytes,
          state.lastOp.sequence,
          state.lastOp.ageMs};
}

RankFacts factsOf(const Rank& wire, ProcessId from) {
  RankFacts rank{wire.rank, from, wire.cudaDevice, wire.nvmlDevice, {}};
  rank.state = {wire.initState,
                wire.asyncError,
                (wire.flags & kFinalizeCalled) != 0,
                (wire.flags & kDestroyFlag) != 0,
                (wire.flags & kAbortFlag) != 0,
                wire.counts,
                {wire.lastFunc, wire.lastBytes, wire.lastSequence, wire.lastAgeMs}};
  return rank;
}

Bytes encodeComm(const CommFacts& comm) {
  ByteWriter out;
  const std::string_view name = std::string_view(comm.name).substr(0, kLongestName);
  const bool noted = comm.parent != 0 || !name.empty();
  out.put(CommHead{comm.key, comm.size, static_cast<std::uint32_t>(noted ? kParentBytes + name.size() : 0)});
  if (noted) {
    out.put(comm.parent);
    out.putText(name);
  }
  out.put(static_cast<std::uint32_t>(comm.ranks.size()));
  for (const RankFacts& rank : comm.ranks) out.put(wireOf(rank));
  out.put(static_cast<std::uint32_t>(comm.members ? comm.members->size() : 0));
  if (!comm.members) return out.take();
  for (const CommMember& member : *comm.members) {
    out.put(WireMember{member.process, member.cudaDevice, member.nvmlDevice});
  }
  return out.take();
}

CommMembers decodeMembers(ByteReader& in, std::int32_t size) {
  const std::size_t count = in.takeCount(sizeof(WireMember));
  if (count == 0) return nullptr;
  if (count != static_cast<std::size_t>(size)) in.fail();
  std::vector<CommMember> members;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const auto wire = in.take<WireMember>();
    members.push_back({wire.process, wire.cudaDevice, wire.nvmlDevice});
  }
  return std::make_shared<const std::vector<CommMember>>(std::move(members));
}

void decodeNote(ByteReader& in, std::size_t bytes, CommFacts& comm) {
  if (bytes == 0) return;
  if (bytes < kParentBytes || bytes > kParentBytes + kLongestName) return in.fail();
  comm.parent = in.take<std::uint64_t>();
  comm.name = in.takeText(bytes - kParentBytes);
}

CommFacts decodeComm(ByteReader& in, ProcessId from) {
  CommFacts comm;
  const auto head = in.take<CommHead>();
  comm.key = head.key;
  comm.size = head.size;
  if (comm.size < 1 || comm.size > kMostRanks) in.fail();
  decodeNote(in, head.noteBytes, comm);
  const std::size_t count = in.takeCount(sizeof(Rank));
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const auto wire = in.take<Rank>();
    const int last = comm.ranks.empty() ? -1 : comm.ranks.back().rank;
    if (wire.rank <= last || wire.rank >= comm.size) in.fail();
    if (wire.flags > kFlags || wire.zero != 0) in.fail();
    if (wire.lastFunc < -1 || wire.lastFunc >= static_cast<int>(kFuncs)) in.fail();
    if (in.ok()) comm.ranks.push_back(factsOf(wire, from));
  }
  comm.members = decodeMembers(in, comm.size);
  return comm;
}

}  // namespace

Key masked(const Key& key, const Key& sealing, std::string_view label, std::span<const std::byte> use) {
  Key mask = bootstrap::authenticate(sealing, label, {use});
  std::transform(key.begin(), key.end(), mask.begin(), mask.begin(), [](std::byte a, std::byte b) { return a ^ b; });
  return mask;
}

Bytes encodeTable(std::span<const Member* const> members, const Key& linkKey) {
  ByteWriter out;
  Salt salt;
  bootstrap::fillRandom(salt);
  const std::size_t most = (kMaxMessage - sizeof(Salt) - sizeof(std::uint32_t)) / sizeof(Entry);
  const auto count = static_cast<std::uint32_t>(std::min(members.size(), most));
  out.put(salt);
  out.put(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ProcessFacts& facts = members[i]->facts;
    out.put(Entry{facts.address, facts.pid, facts.id, facts.hostHash, facts.cudaDevices, facts.nvmlDevices,
                  maskEntry(members[i]->key, linkKey, salt, i), static_cast<std::uint64_t>(facts.state)});
  }
  return out.take();
}

std::optional<std::vector<Member>> decodeTable(std::span<const std::byte> bytes, const Key& linkKey) {
  ByteReader in(bytes);
  const auto salt = in.take<Salt>();
  const std::size_t count = in.takeCount(sizeof(Entry));
  std::vector<Member> members;
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto entry = in.take<Entry>();
    if (!isAddress(entry.address) || entry.state > static_cast<std::uint64_t>(ProcessState::Left)) return std::nullopt;
    Member member{{entry.id, entry.address, entry.pid, entry.hostHash, entry.cudaDevices, entry.nvmlDevices,
                   static_cast<ProcessState>(entry.state)},
                  maskEntry(entry.key, linkKey, salt, i)};
    if (idOf(member.key) != entry.id) return std::nullopt;
    members.push_back(std::move(member));
  }
  if (!in.done()) return std::nullopt;
  return members;
}

Bytes encodeAnswer(const Answer& answer) {
  ByteWriter out;
  out.put(static_cast<std::uint32_t>(answer.unresponsive.size()));
  for (const ProcessId id : answer.unresponsive) out.put(id);
  std::vector<Bytes> parts;
  std::size_t total = out.size() + sizeof(std::uint32_t);
  for (const CommFacts& comm : answer.comms) {
    Bytes part = encodeComm(comm);
    if (total + part.size() > kMaxMessage) break;
    total += part.size();
    parts.push_back(std::move(part));
  }
  out.put(static_cast<std::uint32_t>(parts.size()));
  Bytes all = out.take();
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::optional<Answer> decodeAnswer(std::span<const std::byte> bytes, ProcessId from) {
  ByteReader in(bytes);
  Answer answer;
  const std::size_t unresponsive = in.takeCount(sizeof(ProcessId));
  for (std::size_t i = 0; i < unresponsive; ++i) answer.unresponsive.push_back(in.take<ProcessId>());
  const std::size_t comms = in.takeCount(sizeof(CommHead));
  for (std::size_t i = 0; i < comms && in.ok(); ++i) answer.comms.push_back(decodeComm(in, from));
  if (!in.done()) return std::nullopt;
  return answer;
}

}  // namespace tutti::ras
