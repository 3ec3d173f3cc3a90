// Who may speak: the challenge and response that opens every bootstrap connection. Pure, no sockets.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "bootstrap/link/crypto.h"
#include "bootstrap/link/wire.h"

namespace tutti {
struct KnockWord;
}

namespace tutti::bootstrap {

/// What a connection is for; part of what both sides prove, so that a proof for one use is worthless for another.
enum class Purpose : std::uint8_t { CheckIn = 1, Lookup = 2, Tree = 3, Peer = 4, Kin = 5, Adopt = 6, Ras = 7 };

/// Shows a kernel that a client belongs to who listens (gate.h). The same for all clients of one key, and in the clear
/// on the wire: it spares work, and proves nothing.
using Tag = std::array<std::byte, 8>;

/// How a Hello begins, in every version.
struct HelloHead {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint8_t purpose = 0;
  std::uint8_t zero = 0;
};
static_assert(sizeof(HelloHead) == 8);

/// First bytes of the client. The pass shows that it knows the key, before it is told anything: a stranger gets no
/// answer from which a weak key could be guessed. One that was overheard gets as far as the Challenge.
struct Hello {
  HelloHead head;
  Tag tag{};
  std::int32_t clientRank = -1;
  std::int32_t serverRank = -1;  ///< kRootRank for a root
  Nonce nonce{};
  Proof pass{};  ///< over all before
};
static_assert(sizeof(Hello) == 88);

/// The server's answer: its own nonce, and the proof that it knows the key.
struct Challenge {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t zero = 0;
  Nonce nonce{};
  Proof proof{};
};
static_assert(sizeof(Challenge) == 72);

inline constexpr std::int32_t kRootRank = -1;

enum class Verdict : std::uint8_t { Ok, NotTutti, OtherVersion, OtherTarget, WrongKey };

/// The side that connected. Order: hello(), answer(), then the Proof goes out and frames may follow it at once.
class ClientHandshake {
 public:
  ClientHandshake(const Key& key, Purpose purpose, int clientRank, int serverRank);
  const Hello& hello() const { return hello_; }
  /// Judges the server's challenge; `proof` is set only on Ok.
  Verdict answer(const Challenge& challenge, Proof& proof) const;
  /// What the server says it speaks, after OtherVersion.
  static std::uint16_t versionOf(const Challenge& challenge) { return challenge.version; }

 private:
  Key key_;
  Hello hello_;
};

/// The side that accepted.
class ServerHandshake {
 public:
  ServerHandshake(const Key& key, int serverRank) : key_(key), serverRank_(serverRank) {}
  /// Whether a hello may begin so; any number of bytes.
  static bool plausible(std::span<const std::byte> first);
  /// How the hellos of those who have the key begin.
  std::array<KnockWord, 3> knock() const;
  /// Judges how a hello begins, before the rest has come: Ok, NotTutti or OtherVersion. After OtherVersion `challenge`
  /// is to be sent, so that the client can say why; it holds no proof.
  static Verdict greet(const HelloHead& head, Challenge& challenge);
  /// Judges the whole hello. `challenge` is set, and is to be sent, on Ok alone.
  Verdict challenge(const Hello& hello, Challenge& challenge);
  Verdict verify(const Proof& proof) const;

  Purpose purpose() const { return static_cast<Purpose>(hello_.head.purpose); }
  int clientRank() const { return hello_.clientRank; }

 private:
  Key key_;
  int serverRank_;
  Hello hello_;
  Nonce nonce_{};
};

}  // namespace tutti::bootstrap
