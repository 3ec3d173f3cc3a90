// What local sockets carry, whom a listener lets in, and what both do when the system gives nothing more.
#include "transport/common/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/log_capture.h"
#include "support/until.h"

namespace tutti::test {
namespace {

using transport::LocalListener;
using transport::LocalName;
using transport::PacketIo;
using transport::packetOf;
using transport::ReceivedPacket;
using transport::receivePacket;
using transport::sendPacket;
using NameKey = std::array<std::byte, transport::kNameKeyBytes>;

std::pair<Fd, Fd> joinedSockets() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

/// Of tests that run side by side each has its own.
NameKey ownKey(int which = 0) {
  const std::array<int, 4> words{::getpid(), which, 0, 0};
  NameKey key{};
  std::memcpy(key.data(), words.data(), key.size());
  return key;
}

Fd connectedTo(const transport::LocalName& name) {
  Fd line = transport::localSocket();
  if (::connect(line.get(), name.generic(), name.length) != 0) line.reset();
  return line;
}

/// How many a new descriptor would follow without a gap.
int nextDescriptor() {
  return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
}

/// Nobody gets a new descriptor while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(LocalPacket, ArrivesWholeAndInOrder) {
  const auto [one, other] = joinedSockets();
  const std::uint32_t first = 1;
  const std::uint64_t second = 2;
  ASSERT_EQ(transport::sendPacket(one.get(), transport::packetOf(first)), transport::PacketIo::Done);
  ASSERT_EQ(transport::sendPacket(one.get(), transport::packetOf(second)), transport::PacketIo::Done);
  std::array<std::byte, 64> into{};
  for (const std::size_t bytes : {sizeof(first), sizeof(second)}) {
    const transport::ReceivedPacket packet = transport::receivePacket(other.get(), into);
    EXPECT_EQ(packet.state, transport::PacketIo::Done);
    EXPECT_EQ(packet.bytes, bytes);
    EXPECT_FALSE(packet.attached.valid());
    EXPECT_EQ(into[0], static_cast<std::byte>(bytes == sizeof(first) ? 1 : 2));
  }
}

TEST(LocalPacket, BringsADescriptor) {
  const auto [one, other] = joinedSockets();
  const Fd reading = [&] {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd writing(ends[1]);
    EXPECT_EQ(transport::sendPacket(one.get(), transport::packetOf('x'), writing.get()), transport::PacketIo::Done);
    return Fd(ends[0]);
  }();
  char into = 0;
  transport::ReceivedPacket packet = transport::receivePacket(other.get(), std::as_writable_bytes(std::span(&into, 1)));
  ASSERT_TRUE(packet.attached.valid());
  EXPECT_NE(::fcntl(packet.attached.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(packet.attached.get(), "y", 1), 1);
  ASSERT_EQ(::read(reading.get(), &into, 1), 1);
  EXPECT_EQ(into, 'y');
  packet.attached.reset();
  EXPECT_EQ(::read(reading.get(), &into, 1), 0) << "that was the last";
}

TEST(LocalPacket, LeavesNothingBehindOfDescriptorsThatNobodyAskedFor) {
  const auto [one, other] = joinedSockets();
  const int before = nextDescriptor();
  const std::array<int, 2> two{one.get(), one.get()};
  char text = 'x';
  iovec content{&text, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(two))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(two));
  std::memcpy(CMSG_DATA(header), two.data(), sizeof(two));
  ASSERT_EQ(::sendmsg(one.get(), &message, 0), 1);
  EXPECT_EQ(transport::receivePacket(other.get(), std::as_writable_bytes(std::span(&text, 1))).state,
            transport::PacketIo::Done);
  EXPECT_EQ(nextDescriptor(), before);
}

TEST(LocalPacket, SaysHowLongItWasWhereItDidNotFit) {
  const auto [one, other] = joinedSockets();
  const std::array<std::byte, 100> packet{};
  std::array<std::byte, 10> into{};
  ASSERT_EQ(transport::sendPacket(one.get(), packet), transport::PacketIo::Done);
  ASSERT_EQ(transport::sendPacket(one.get(), std::span(packet).first<5>()), transport::PacketIo::Done);
  EXPECT_EQ(transport::receivePacket(other.get(), into).bytes, 100U);
  EXPECT_EQ(transport::receivePacket(other.get(), into).bytes, 5U) << "the rest of the first is lost";
}

TEST(LocalPacket, IsToBeTriedAgainWhileNothingComesOrIsTaken) {
  const auto [one, other] = joinedSockets();
  std::array<std::byte, 64> packet{};
  EXPECT_EQ(transport::receivePacket(other.get(), packet).state, transport::PacketIo::Again);
  int sent = 0;
  transport::PacketIo state = transport::PacketIo::Done;
  for (; state == transport::PacketIo::Done && sent < 1'000'000; ++sent)
    state = transport::sendPacket(one.get(), packet);
  EXPECT_EQ(state, transport::PacketIo::Again);
  EXPECT_EQ(transport::receivePacket(other.get(), packet).state, transport::PacketIo::Done);
  EXPECT_EQ(transport::sendPacket(one.get(), packet), transport::PacketIo::Done) << "there is room again";
}

TEST(LocalPacket, FindsTheOtherEndGone) {
  auto [one, other] = joinedSockets();
  other.reset();
  std::array<std::byte, 64> packet{};
  EXPECT_EQ(transport::sendPacket(one.get(), packet), transport::PacketIo::Gone);
  EXPECT_EQ(transport::receivePacket(one.get(), packet).state, transport::PacketIo::Gone);
}

/// Uses system calls only: it runs after a fork, for as root there is no limit. 0: the system has refused for now.
int sendDescriptorsAsOtherUser(int line) {
  constexpr int kMost = 4;
  const rlimit few{kMost, kMost};
  if (::setuid(65534) != 0 || ::setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
  const std::byte packet{};
  transport::PacketIo state = transport::PacketIo::Done;
  // Those under way are counted for all processes of the user.
  for (int i = 0; i < kMost + 3 && state == transport::PacketIo::Done; ++i)
    state = transport::sendPacket(line, std::span(&packet, 1), line);
  return state == transport::PacketIo::Again && errno == ETOOMANYREFS ? 0 : 1;
}

TEST(LocalPacket, IsToBeTriedAgainWhenTooManyDescriptorsAreUnderWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto [one, other] = joinedSockets();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(sendDescriptorsAsOtherUser(one.get()));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_EQ(status, 0);
}

TEST(LocalName, IsAbstractAndTellsPurposesAndKeysApart) {
  NameKey key{};
  key.front() = std::byte{0x01};
  key.back() = std::byte{0xfe};
  const auto textOf = [](const transport::LocalName& name) {
    return std::string(name.address.sun_path, name.length - offsetof(sockaddr_un, sun_path));
  };
  const std::string zero(1, '\0');
  EXPECT_EQ(textOf(transport::localName("relay", key)), zero + "tutti-relay-010000000000000000000000000000fe");
  EXPECT_EQ(textOf(transport::localName("shm", key)), zero + "tutti-shm-010000000000000000000000000000fe");
  const std::string longOne(200, 'p');
  EXPECT_EQ(textOf(transport::localName(longOne, key)),
            zero + "tutti-" + longOne.substr(0, 32) + "-010000000000000000000000000000fe");
}

TEST(LocalListener, LetsInWhoeverIsOfOurUser) {
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  EXPECT_EQ(listener.polled(), -1);
  EXPECT_FALSE(listener.accept().valid()) << "it does not listen yet";
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  EXPECT_FALSE(listener.accept().valid()) << "nobody has come";
  EXPECT_EQ(listener.patience(), -1);
  const Fd guest = connectedTo(name);
  ASSERT_TRUE(guest.valid());
  pollfd polled{listener.polled(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 20'000), 1);
  const Fd line = listener.accept();
  ASSERT_TRUE(line.valid());
  EXPECT_FALSE(listener.accept().valid()) << "there was one";
  ASSERT_EQ(transport::sendPacket(guest.get(), transport::packetOf('x')), transport::PacketIo::Done);
  std::array<std::byte, 1> into{};
  EXPECT_EQ(transport::receivePacket(line.get(), into).bytes, 1U);
  EXPECT_EQ(transport::receivePacket(line.get(), into).state, transport::PacketIo::Again) << "it does not wait";
}

TEST(LocalListener, GivesItsNameBack) {
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  const Fd guest = connectedTo(name);
  listener.close();
  EXPECT_EQ(listener.polled(), -1);
  EXPECT_FALSE(listener.accept().valid());
  EXPECT_FALSE(connectedTo(name).valid());
  std::array<std::byte, 1> into{};
  EXPECT_EQ(transport::receivePacket(guest.get(), into).state, transport::PacketIo::Gone)
      << "nobody will let it in any more";
  EXPECT_TRUE(listener.open(name, "TEST", "").ok());
}

TEST(LocalListener, SaysThatAnotherHasTheName) {
  transport::LocalListener first;
  transport::LocalListener second;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(first.open(name, "TEST", "").ok());
  expectLog("TEST : listening at a local socket failed: Address already in use (98). Do without");
  EXPECT_EQ(second.open(name, "TEST", "Do without").code(), ncclSystemError);
  EXPECT_EQ(second.polled(), -1);
  EXPECT_TRUE(second.open(transport::localName("test", ownKey(1)), "TEST", "").ok());
}

/// Uses system calls only: it runs after a fork. 0: the line was closed.
int knockAsOtherUser(const transport::LocalName& name) {
  if (::setuid(65534) != 0) return 2;
  const int line = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (::connect(line, name.generic(), name.length) != 0) return 3;
  pollfd polled{line, POLLIN, 0};
  char byte = 0;
  return ::poll(&polled, 1, 20'000) == 1 && ::recv(line, &byte, 1, MSG_DONTWAIT) <= 0 ? 0 : 1;
}

TEST(LocalListener, ClosesTheLinesOfOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(knockAsOtherUser(name));
  pollfd polled{listener.polled(), POLLIN, 0};
  ::poll(&polled, 1, 5000);  // in vain where it cannot become another user
  EXPECT_FALSE(listener.accept().valid());
  EXPECT_LT(listener.patience(), 10) << "that is no want of descriptors";
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_EQ(status, 0);
}

TEST(LocalListener, RestsAfterStrangersAndGoesOn) {
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  const Fd stranger = connectedTo(name);
  ASSERT_TRUE(listener.accept().valid());
  listener.turnedAway();
  EXPECT_FALSE(listener.accept().valid());
  EXPECT_NE(listener.patience(), -1) << "it is to be asked again";
  EXPECT_LT(listener.patience(), 10);
  const Fd guest = connectedTo(name);
  EXPECT_TRUE(until([&] { return listener.accept().valid(); }));
  EXPECT_FALSE(listener.accept().valid());
  EXPECT_NE(listener.polled(), -1);
  EXPECT_EQ(listener.patience(), -1);
}

TEST(LocalListener, LetsInABatchAtATime) {
  constexpr int kMany = 300;
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  std::vector<Fd> guests;
  for (int i = 0; i < kMany; ++i) guests.push_back(connectedTo(name));
  int first = 0;
  while (listener.accept().valid()) ++first;
  EXPECT_LT(first, kMany) << "others have their turn";
  EXPECT_EQ(listener.patience(), -1);
  int second = 0;
  while (listener.accept().valid()) ++second;
  EXPECT_EQ(first + second, kMany);
}

TEST(LocalListener, LetsNobodyInWhileDescriptorsHaveRunOut) {
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  const Fd guest = connectedTo(name);
  ASSERT_TRUE(guest.valid());
  {
    const NoDescriptors none;
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(listener.accept().valid());
      EXPECT_EQ(listener.polled(), -1) << "it would stay readable";
      EXPECT_GT(listener.patience(), 0);
    }
  }
  EXPECT_TRUE(listener.accept().valid()) << "who has come is still there";
  EXPECT_NE(listener.polled(), -1);
  EXPECT_EQ(listener.patience(), -1);
}

TEST(LocalListener, ForgetsWhenItIsClosedThatDescriptorsHadRunOut) {
  transport::LocalListener listener;
  const transport::LocalName name = transport::localName("test", ownKey());
  ASSERT_TRUE(listener.open(name, "TEST", "").ok());
  const Fd guest = connectedTo(name);
  {
    const NoDescriptors none;
    EXPECT_FALSE(listener.accept().valid());
  }
  listener.close();
  EXPECT_EQ(listener.patience(), -1);
}

/// Until something has come, or the end.
PacketIo awaitPacket(int line) {
  int content = 0;
  while (true) {
    const PacketIo state = receivePacket(line, std::as_writable_bytes(std::span(&content, 1))).state;
    if (state != PacketIo::Again) return state;
  }
}

TEST(LocalPacket, SentJustBeforeTheEndIsNeverTakenForTheEnd) {
  constexpr int kLines = 30'000;
  std::atomic<int> next{-1};  // the sender's end of the line that is to be used and closed
  std::atomic<bool> ended{false};
  std::thread sender([&] {
    while (!ended) {
      const Fd line(next.exchange(-1));
      if (!line.valid()) continue;
      EXPECT_EQ(sendPacket(line.get(), packetOf(7)), PacketIo::Done);
    }
  });
  int lost = 0;
  for (int i = 0; i < kLines; ++i) {
    auto [ours, theirs] = joinedSockets();
    next = theirs.release();
    lost += awaitPacket(ours.get()) == PacketIo::Done ? 0 : 1;
  }
  ended = true;
  sender.join();
  EXPECT_EQ(lost, 0);
}

TEST(LocalListener, SaysThatThereAreNoDescriptors) {
  transport::LocalListener listener;
  expectLog("TEST : a local socket failed: Too many open files (24). Raise the limit");
  const NoDescriptors none;
  EXPECT_EQ(listener.open(transport::localName("test", ownKey()), "TEST", "Raise the limit").code(), ncclSystemError);
}

}  // namespace
}  // namespace tutti::test
