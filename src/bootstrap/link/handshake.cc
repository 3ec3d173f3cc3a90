#include "bootstrap/link/handshake.h"
#include "base/socket/knock.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tutti::bootstrap {
namespace {

constexpr std::uint32_t kMagic = 0x31747554;  // "Tut1"
constexpr std::uint8_t kLastPurpose = static_cast<std::uint8_t>(Purpose::Ras);

/// The hello holds version, purpose, both ranks and the client's nonce: binding it binds all of them. The label sets
/// the two directions apart, so that a proof cannot be sent back to its author.
Proof proofOf(const Key& key, std::string_view side, const Hello& hello, const Nonce& serverNonce) {
  return authenticate(key, side, {std::as_bytes(std::span(&hello, 1)), serverNonce});
}

Proof passOf(const Key& key, const Hello& hello) {
  return authenticate(key, "tutti pass", {std::as_bytes(std::span(&hello, 1)).first(offsetof(Hello, pass))});
}

Tag tagOf(const Key& key) {
  const Proof whole = authenticate(key, "tutti knock", {});
  Tag tag;
  std::copy_n(whole.begin(), tag.size(), tag.begin());
  return tag;
}

/// Four bytes of `hello` as a filter compares them.
KnockWord wordOf(const Hello& hello, std::size_t offset) {
  KnockWord word{static_cast<std::uint32_t>(offset), {}};
  std::memcpy(word.bytes.data(), reinterpret_cast<const std::byte*>(&hello) + offset, word.bytes.size());
  return word;
}

}  // namespace

ClientHandshake::ClientHandshake(const Key& key, Purpose purpose, int clientRank, int serverRank) : key_(key) {
  hello_.head.magic = kMagic;
  hello_.head.version = kProtocolVersion;
  hello_.head.purpose = static_cast<std::uint8_t>(purpose);
  hello_.tag = tagOf(key_);
  hello_.clientRank = clientRank;
  hello_.serverRank = serverRank;
  fillRandom(hello_.nonce);
  hello_.pass = passOf(key_, hello_);
}

Verdict ClientHandshake::answer(const Challenge& challenge, Proof& proof) const {
  if (challenge.magic != kMagic) return Verdict::NotTutti;
  if (challenge.version != kProtocolVersion) return Verdict::OtherVersion;
  if (!sameProof(challenge.proof, proofOf(key_, "tutti server", hello_, challenge.nonce))) return Verdict::WrongKey;
  proof = proofOf(key_, "tutti client", hello_, challenge.nonce);
  return Verdict::Ok;
}

bool ServerHandshake::plausible(std::span<const std::byte> first) {
  return std::memcmp(first.data(), &kMagic, std::min(first.size(), sizeof kMagic)) == 0;
}

std::array<KnockWord, 3> ServerHandshake::knock() const {
  Hello hello;
  hello.head.magic = kMagic;
  hello.tag = tagOf(key_);
  constexpr std::size_t kTag = offsetof(Hello, tag);
  return {wordOf(hello, offsetof(Hello, head)), wordOf(hello, kTag), wordOf(hello, kTag + sizeof(KnockWord::bytes))};
}

Verdict ServerHandshake::greet(const HelloHead& head, Challenge& challenge) {
  if (head.magic != kMagic) return Verdict::NotTutti;
  challenge = Challenge{};
  challenge.magic = kMagic;
  challenge.version = kProtocolVersion;
  if (head.version != kProtocolVersion) return Verdict::OtherVersion;
  return head.purpose == 0 || head.purpose > kLastPurpose ? Verdict::NotTutti : Verdict::Ok;
}

Verdict ServerHandshake::challenge(const Hello& hello, Challenge& challenge) {
  if (const Verdict verdict = greet(hello.head, challenge); verdict != Verdict::Ok) return verdict;
  if (!sameProof(hello.pass, passOf(key_, hello))) return Verdict::WrongKey;
  if (hello.serverRank != serverRank_) return Verdict::OtherTarget;
  hello_ = hello;
  fillRandom(nonce_);
  challenge.nonce = nonce_;
  challenge.proof = proofOf(key_, "tutti server", hello_, nonce_);
  return Verdict::Ok;
}

Verdict ServerHandshake::verify(const Proof& proof) const {
  return sameProof(proof, proofOf(key_, "tutti client", hello_, nonce_)) ? Verdict::Ok : Verdict::WrongKey;
}

}  // namespace tutti::bootstrap
