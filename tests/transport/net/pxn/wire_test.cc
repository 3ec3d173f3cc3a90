// Names and proofs that only those can make who know the communicator's secret.
#include "transport/net/pxn/wire.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::test {
namespace {

net::pxn::Secret secretOf(int comm) {
  net::pxn::Secret secret{};
  secret.back() = static_cast<std::byte>(comm);
  return secret;
}

TEST(RelayWire, NamesFollowFromTheSecretAndTheRelay) {
  ASSERT_TRUE(net::pxn::initProofs().ok());
  const auto nameOf = [](const net::pxn::Secret& secret, int rank) {
    const transport::LocalName name = net::pxn::lineName(secret, rank);
    return std::string(name.address.sun_path + 1, name.length - sizeof(sa_family_t) - 1);
  };
  EXPECT_EQ(nameOf(secretOf(1), 1), nameOf(secretOf(1), 1));
  EXPECT_NE(nameOf(secretOf(1), 1), nameOf(secretOf(1), 2));
  EXPECT_NE(nameOf(secretOf(1), 1), nameOf(secretOf(2), 1));
  EXPECT_EQ(nameOf(secretOf(1), 1).find("tutti-relay-"), 0U);
}

TEST(RelayWire, ProofsHoldForOneSecretDirectionAndMeeting) {
  ASSERT_TRUE(net::pxn::initProofs().ok());
  const net::pxn::Nonce nonce = net::pxn::freshNonce();
  net::pxn::Hello hello;
  hello.sender = 0;
  hello.relay = 1;
  hello.nonce = net::pxn::freshNonce();
  const net::pxn::Proof proof = net::pxn::prove(secretOf(1), hello, nonce, true);
  EXPECT_TRUE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(1), hello, nonce, true)));
  EXPECT_FALSE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(1), hello, nonce, false)));
  EXPECT_FALSE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(2), hello, nonce, true)));
  EXPECT_FALSE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(1), hello, net::pxn::freshNonce(), true)));
  net::pxn::Hello other = hello;
  other.nonce = net::pxn::freshNonce();
  EXPECT_FALSE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(1), other, nonce, true)));
  other = hello;
  other.sender = 2;
  EXPECT_FALSE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(1), other, nonce, true)));
  other = hello;
  other.relay = 2;
  EXPECT_FALSE(net::pxn::sameProof(proof, net::pxn::prove(secretOf(1), other, nonce, true)));
}

TEST(RelayWire, PassesHoldForOneSecretAndHelloAndAreNoProofs) {
  ASSERT_TRUE(net::pxn::initProofs().ok());
  net::pxn::Hello hello;
  hello.sender = 0;
  hello.relay = 1;
  const net::pxn::Proof pass = net::pxn::passOf(secretOf(1), hello);
  EXPECT_TRUE(net::pxn::sameProof(pass, net::pxn::passOf(secretOf(1), hello)));
  EXPECT_FALSE(net::pxn::sameProof(pass, net::pxn::passOf(secretOf(2), hello)));
  EXPECT_FALSE(net::pxn::sameProof(pass, net::pxn::prove(secretOf(1), hello, {}, true)));
  net::pxn::Hello other = hello;
  other.nonce = net::pxn::freshNonce();
  EXPECT_FALSE(net::pxn::sameProof(pass, net::pxn::passOf(secretOf(1), other)));
}

}  // namespace
}  // namespace tutti::test
