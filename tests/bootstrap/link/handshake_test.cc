#include "bootstrap/link/handshake.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

class HandshakeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(initCrypto().ok());
    fillRandom(key_);
  }
  Key key_{};
  Challenge challenge_;
  Proof proof_{};
};

TEST_F(HandshakeTest, SameKeyLetsBothIn) {
  const ClientHandshake client(key_, Purpose::Tree, 3, 1);
  ServerHandshake server(key_, 1);
  ASSERT_EQ(server.challenge(client.hello(), challenge_), Verdict::Ok);
  ASSERT_EQ(client.answer(challenge_, proof_), Verdict::Ok);
  EXPECT_EQ(server.verify(proof_), Verdict::Ok);
  EXPECT_EQ(server.clientRank(), 3);
  EXPECT_EQ(server.purpose(), Purpose::Tree);
}

TEST_F(HandshakeTest, AServerSaysNothingToWhoHasNoPass) {
  Key other = key_;
  other[0] ^= std::byte{1};
  const Hello guess = ClientHandshake(other, Purpose::Tree, 3, 1).hello();
  Hello changed = ClientHandshake(key_, Purpose::Tree, 3, 1).hello();
  changed.nonce[31] ^= std::byte{1};
  for (const Hello& hello : {guess, changed}) {
    EXPECT_EQ(ServerHandshake(key_, 1).challenge(hello, challenge_), Verdict::WrongKey);
    EXPECT_EQ(challenge_.proof, Proof{}) << "nothing is told that depends on the key";
  }
}

TEST_F(HandshakeTest, AClientTellsAServerWithAnotherKey) {
  const ClientHandshake client(key_, Purpose::Tree, 3, 1);
  ServerHandshake server(key_, 1);
  ASSERT_EQ(server.challenge(client.hello(), challenge_), Verdict::Ok);
  challenge_.proof[7] ^= std::byte{1};
  EXPECT_EQ(client.answer(challenge_, proof_), Verdict::WrongKey);
}

TEST_F(HandshakeTest, AnOverheardPassGetsAsFarAsTheChallenge) {
  const Hello overheard = ClientHandshake(key_, Purpose::Tree, 3, 1).hello();
  ServerHandshake server(key_, 1);
  ASSERT_EQ(server.challenge(overheard, challenge_), Verdict::Ok);
  EXPECT_EQ(server.verify(overheard.pass), Verdict::WrongKey);
  EXPECT_EQ(server.verify(challenge_.proof), Verdict::WrongKey);
}

TEST_F(HandshakeTest, ServersProofIsNoClientsProof) {
  const ClientHandshake client(key_, Purpose::Tree, 3, 1);
  ServerHandshake server(key_, 1);
  ASSERT_EQ(server.challenge(client.hello(), challenge_), Verdict::Ok);
  EXPECT_EQ(server.verify(challenge_.proof), Verdict::WrongKey);
}

TEST_F(HandshakeTest, ProofForOnePurposeIsWorthlessForAnother) {
  const ClientHandshake client(key_, Purpose::Tree, 3, 1);
  ServerHandshake server(key_, 1);
  Hello changed = client.hello();
  changed.head.purpose = static_cast<std::uint8_t>(Purpose::Peer);
  EXPECT_EQ(server.challenge(changed, challenge_), Verdict::WrongKey) << "the pass is for one purpose";
  ASSERT_EQ(server.challenge(ClientHandshake(key_, Purpose::Peer, 3, 1).hello(), challenge_), Verdict::Ok);
  EXPECT_EQ(client.answer(challenge_, proof_), Verdict::WrongKey);
}

TEST_F(HandshakeTest, OldProofDoesNotOpenANewConnection) {
  const ClientHandshake client(key_, Purpose::Tree, 3, 1);
  ServerHandshake first(key_, 1);
  ServerHandshake second(key_, 1);
  ASSERT_EQ(first.challenge(client.hello(), challenge_), Verdict::Ok);
  ASSERT_EQ(client.answer(challenge_, proof_), Verdict::Ok);
  Challenge ignored;
  ASSERT_EQ(second.challenge(client.hello(), ignored), Verdict::Ok);
  EXPECT_EQ(second.verify(proof_), Verdict::WrongKey);
}

TEST_F(HandshakeTest, GarbageVersionsAndTargetsAreToldApart) {
  ServerHandshake server(key_, 1);
  EXPECT_EQ(server.challenge(Hello{}, challenge_), Verdict::NotTutti);
  Hello hello = ClientHandshake(key_, Purpose::Tree, 3, 1).hello();
  hello.head.version = 99;
  EXPECT_EQ(server.challenge(hello, challenge_), Verdict::OtherVersion);
  EXPECT_EQ(server.challenge(ClientHandshake(key_, Purpose::Tree, 3, 2).hello(), challenge_), Verdict::OtherTarget);
}

}  // namespace
}  // namespace tutti::bootstrap
