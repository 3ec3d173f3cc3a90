// Questions at a local socket: answered whole, one after another, and never waited for.
#include "base/socket/local_service.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace tutti::test {
namespace {

using namespace std::chrono_literals;
using Time = SteadyClock::time_point;

Fd client(std::string_view topic) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const LocalAddress at = localAddress(topic, ::getpid());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) return {};
  return socket;
}

/// What a client has got so far; `ended`: and that there will be no more.
std::string take(const Fd& socket, bool* ended = nullptr) {
  std::string all(1 << 20, '\0');
  std::size_t got = 0;
  while (true) {
    const ssize_t more = ::recv(socket.get(), all.data() + got, all.size() - got, MSG_DONTWAIT);
    if (ended != nullptr) *ended = more == 0;
    if (more <= 0) break;
    got += static_cast<std::size_t>(more);
  }
  all.resize(got);
  return all;
}

TEST(LocalService, AnswersOneClientAfterTheOther) {
  LocalService service(6s);
  ASSERT_TRUE(service.open("test").ok());
  const Time now{};
  EXPECT_FALSE(service.asked(now));
  const Fd first = client("test");
  const Fd second = client("test");
  ASSERT_TRUE(first.valid() && second.valid());
  EXPECT_TRUE(isOwnPeer(first.get()));
  for (const Fd* asking : {&first, &second}) {
    ASSERT_TRUE(service.asked(now));
    service.give("one answer");
    EXPECT_FALSE(service.asked(now));
    service.send(now);
    bool ended = false;
    EXPECT_EQ(take(*asking, &ended), "one answer");
    EXPECT_TRUE(ended);
  }
  EXPECT_FALSE(service.asked(now));
}

TEST(LocalService, LetsGoOfWhoDoesNotRead) {
  LocalService service(6s);
  ASSERT_TRUE(service.open("slow").ok());
  Time now{};
  const Fd idle = client("slow");
  const Fd next = client("slow");
  ASSERT_TRUE(service.asked(now));
  service.give(std::string(64 << 20, 'x'));  // more than a socket holds
  service.send(now);
  EXPECT_FALSE(service.asked(now));
  now += 7s;
  service.send(now);
  ASSERT_TRUE(service.asked(now));
  service.give("at once");
  service.send(now);
  EXPECT_EQ(take(next), "at once");
}

TEST(LocalService, IsNoLongerThereAfterItsEnd) {
  LocalService service(6s);
  ASSERT_TRUE(service.open("ends").ok());
  EXPECT_FALSE(LocalService(6s).open("ends").ok()) << "two at one name";
  service.close();
  EXPECT_FALSE(client("ends").valid());
  EXPECT_FALSE(service.asked(Time{}));
}

}  // namespace
}  // namespace tutti::test
