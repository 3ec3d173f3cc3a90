#include "bootstrap/link/handshake.h"

namespace tutti::bootstrap {
namespace {

constexpr std::uint32_t kMagic = 0x31747554;  // "Tut1"
constexpr std::uint8_t kLastPurpose = static_cast<std::uint8_t>(Purpose::Peer);

/// The hello holds version, purpose, both ranks and the client's nonce: binding it binds all of them. The label sets
/// the two directions apart, so that a proof cannot be sent back to its author.
Proof proofOf(const Key& key, std::string_view side, const Hello& hello, const Nonce& serverNonce) {
  return authenticate(key, side, {std::as_bytes(std::span(&hello, 1)), serverNonce});
}

}  // namespace

ClientHandshake::ClientHandshake(const Key& key, Purpose purpose, int clientRank, int serverRank) : key_(key) {
  hello_.magic = kMagic;
  hello_.version = kProtocolVersion;
  hello_.purpose = static_cast<std::uint8_t>(purpose);
  hello_.clientRank = clientRank;
  hello_.serverRank = serverRank;
  fillRandom(hello_.nonce);
}

Verdict ClientHandshake::answer(const Challenge& challenge, Proof& proof) const {
  if (challenge.magic != kMagic) return Verdict::NotTutti;
  if (challenge.version != kProtocolVersion) return Verdict::OtherVersion;
  if (!sameProof(challenge.proof, proofOf(key_, "tutti server", hello_, challenge.nonce))) return Verdict::WrongKey;
  proof = proofOf(key_, "tutti client", hello_, challenge.nonce);
  return Verdict::Ok;
}

Verdict ServerHandshake::challenge(const Hello& hello, Challenge& challenge) {
  if (hello.magic != kMagic || hello.purpose == 0 || hello.purpose > kLastPurpose) return Verdict::NotTutti;
  challenge = Challenge{};
  challenge.magic = kMagic;
  challenge.version = kProtocolVersion;
  if (hello.version != kProtocolVersion) return Verdict::OtherVersion;
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
