// Names and proofs that only those can make who know the communicator's secret.
#include "transport/net/pxn/wire.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::test {
namespace {

relay::Secret secretOf(int comm) {
  relay::Secret secret{};
  secret.back() = static_cast<std::byte>(comm);
  return secret;
}

TEST(RelayWire, NamesFollowFromTheSecretAndTheRelay) {
  ASSERT_TRUE(relay::initProofs().ok());
  const auto nameOf = [](const relay::Secret& secret, int rank) {
    const transport::LocalName name = relay::lineName(secret, rank);
    return std::string(name.address.sun_path + 1, name.length - sizeof(sa_family_t) - 1);
  };
  EXPECT_EQ(nameOf(secretOf(1), 1), nameOf(secretOf(1), 1));
  EXPECT_NE(nameOf(secretOf(1), 1), nameOf(secretOf(1), 2));
  EXPECT_NE(nameOf(secretOf(1), 1), nameOf(secretOf(2), 1));
  EXPECT_EQ(nameOf(secretOf(1), 1).find("tutti-relay-"), 0U);
}

TEST(RelayWire, ProofsHoldForOneSecretDirectionAndMeeting) {
  ASSERT_TRUE(relay::initProofs().ok());
  const relay::Nonce nonce = relay::freshNonce();
  relay::Hello hello;
  hello.sender = 0;
  hello.relay = 1;
  hello.nonce = relay::freshNonce();
  const relay::Proof proof = relay::prove(secretOf(1), hello, nonce, true);
  EXPECT_TRUE(relay::sameProof(proof, relay::prove(secretOf(1), hello, nonce, true)));
  EXPECT_FALSE(relay::sameProof(proof, relay::prove(secretOf(1), hello, nonce, false)));
  EXPECT_FALSE(relay::sameProof(proof, relay::prove(secretOf(2), hello, nonce, true)));
  EXPECT_FALSE(relay::sameProof(proof, relay::prove(secretOf(1), hello, relay::freshNonce(), true)));
  relay::Hello other = hello;
  other.nonce = relay::freshNonce();
  EXPECT_FALSE(relay::sameProof(proof, relay::prove(secretOf(1), other, nonce, true)));
  other = hello;
  other.sender = 2;
  EXPECT_FALSE(relay::sameProof(proof, relay::prove(secretOf(1), other, nonce, true)));
  other = hello;
  other.relay = 2;
  EXPECT_FALSE(relay::sameProof(proof, relay::prove(secretOf(1), other, nonce, true)));
}

}  // namespace
}  // namespace tutti::test
