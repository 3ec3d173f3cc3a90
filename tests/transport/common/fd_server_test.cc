// Who gets a descriptor, who does not, and that nobody is held up by others.
#include "transport/common/fd_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/socket/unproven.h"
#include "support/log_capture.h"
#include "transport/common/fd_fetch.h"
#include "transport/common/local_strangers.h"

namespace tutti::test {
namespace {

using transport::FdFetch;
using transport::FdServer;
using transport::FetchState;
using transport::Ticket;

constexpr transport::FdPurpose kPurpose{"SHM", "tutti-shm", "NCCL_SHM_DISABLE=1 does without shared memory"};

Deadline inTime() {
  return Deadline::in(std::chrono::seconds(20));
}

template <class Condition>
bool comesTrue(Condition&& condition) {
  const Deadline deadline = inTime();
  while (!deadline.expired()) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

Fd someFile(const char* content) {
  Fd fd(::memfd_create("tutti-test", MFD_CLOEXEC));
  EXPECT_GT(::write(fd.get(), content, std::string(content).size()), 0);
  return fd;
}

std::string contentOf(const Fd& fd) {
  char text[64]{};
  const ssize_t got = ::pread(fd.get(), text, sizeof(text), 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

transport::FetchState finish(transport::FdFetch& fetch) {
  transport::FetchState state = transport::FetchState::Pending;
  comesTrue([&] { return (state = fetch.advance()) != transport::FetchState::Pending; });
  return state;
}

std::string fetched(const transport::Ticket& ticket) {
  transport::FdFetch fetch(ticket, inTime());
  return finish(fetch) == transport::FetchState::Done ? contentOf(fetch.take()) : "failed: " + fetch.why();
}

/// Connected to the server, as anybody of this user can.
Fd visitor(const transport::Ticket& ticket) {
  Fd line(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const transport::LocalName name = transport::socketName(ticket.server);
  EXPECT_EQ(::connect(line.get(), name.generic(), name.length), 0);
  return line;
}

/// Whether the server ends the line without a word.
bool isDropped(const Fd& line) {
  pollfd polled{line.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&polled, 1, 20'000) == 1 && ::recv(line.get(), &byte, 1, MSG_DONTWAIT) <= 0;
}

TEST(FdServer, HandsOutWhatTheTicketIsFor) {
  transport::FdServer server(kPurpose);
  const transport::Ticket first = server.offer(someFile("first")).value();
  const transport::Ticket second = server.offer(someFile("second")).value();
  EXPECT_EQ(fetched(second), "second");
  EXPECT_EQ(fetched(first), "first");
  EXPECT_TRUE(comesTrue([&] { return server.pending() == 0; }));
}

TEST(FdServer, ListensOnlyWhileSomethingIsOnOffer) {
  transport::FdServer server(kPurpose);
  EXPECT_FALSE(server.listening());
  for (int i = 0; i < 3; ++i) {
    const transport::Ticket taken = server.offer(someFile("a")).value();
    const transport::Ticket withdrawn = server.offer(someFile("b")).value();
    EXPECT_EQ(fetched(taken), "a");
    EXPECT_TRUE(server.listening());
    server.withdraw(withdrawn);
    EXPECT_TRUE(comesTrue([&] { return !server.listening(); }));
  }
}

TEST(FdServer, HandsOutOnce) {
  transport::FdServer server(kPurpose);
  ASSERT_TRUE(server.offer(someFile("kept")).ok());
  const transport::Ticket ticket = server.offer(someFile("once")).value();
  EXPECT_EQ(fetched(ticket), "once");
  EXPECT_NE(fetched(ticket).find("does not offer it any more"), std::string::npos);
}

TEST(FdServer, WithdrawnIsRefused) {
  transport::FdServer server(kPurpose);
  ASSERT_TRUE(server.offer(someFile("kept")).ok());
  const transport::Ticket ticket = server.offer(someFile("gone")).value();
  server.withdraw(ticket);
  EXPECT_NE(fetched(ticket).find("does not offer it any more"), std::string::npos);
}

TEST(FdServer, ThatIsGoneIsSeenAtOnce) {
  transport::Ticket ticket;
  {
    transport::FdServer server(kPurpose);
    ticket = server.offer(someFile("gone")).value();
  }
  transport::FdFetch fetch(ticket, inTime());
  EXPECT_EQ(fetch.advance(), transport::FetchState::Failed);
  EXPECT_NE(fetch.why().find("nobody offers it any more"), std::string::npos);
}

TEST(FdServer, GuessedTicketGetsNothing) {
  transport::FdServer server(kPurpose);
  const transport::Ticket ticket = server.offer(someFile("secret")).value();
  transport::Ticket guess = ticket;
  guess.item[7] ^= std::byte{1};
  EXPECT_EQ(fetched(guess).find("secret"), std::string::npos);
  EXPECT_EQ(fetched(ticket), "secret");
}

TEST(FdServer, NonsenseIsDroppedWithoutAWord) {
  transport::FdServer server(kPurpose);
  const transport::Ticket ticket = server.offer(someFile("content")).value();
  for (const std::size_t bytes : {1U, 8U, 23U, 24U, 25U, 4000U}) {
    const Fd line = visitor(ticket);
    const std::vector<char> nonsense(bytes, 'x');
    ASSERT_EQ(::send(line.get(), nonsense.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(isDropped(line)) << bytes;
  }
  const Fd early = visitor(ticket);
  ::shutdown(early.get(), SHUT_WR);
  EXPECT_TRUE(isDropped(early));
  EXPECT_EQ(fetched(ticket), "content");
}

/// Half of them are for local sockets.
constexpr std::size_t kPlaces = 8;

TEST(FdServer, SilentStrangersHoldUpNobody) {
  UnprovenPlaces places(kPlaces);
  transport::FdServer server(kPurpose, places);
  const transport::Ticket first = server.offer(someFile("first")).value();
  const transport::Ticket second = server.offer(someFile("second")).value();
  std::vector<Fd> silent;
  for (std::size_t i = 0; i < kPlaces; ++i) silent.push_back(visitor(first));
  EXPECT_EQ(fetched(first), "first");
  for (std::size_t i = 0; i < 4 * kPlaces; ++i) silent.push_back(visitor(second));
  EXPECT_EQ(fetched(second), "second");
}

TEST(FdServer, SilentStrangersOfAllServersShareFewPlacesAndTheLastOnesGo) {
  UnprovenPlaces places(kPlaces);
  transport::FdServer one(kPurpose, places);
  transport::FdServer other(kPurpose, places);
  const transport::Ticket first = one.offer(someFile("first")).value();
  const transport::Ticket second = other.offer(someFile("second")).value();
  std::vector<Fd> silent;
  for (std::size_t i = 0; i < kPlaces / 2; ++i) silent.push_back(visitor(first));
  ASSERT_TRUE(comesTrue([&] { return places.taken() == kPlaces / 2; }));
  const auto full = SteadyClock::now();
  EXPECT_TRUE(isDropped(visitor(first)));
  EXPECT_TRUE(isDropped(visitor(second)));
  EXPECT_LT(secondsSince(full), 1.9) << "not only when the others' time is over";
  EXPECT_TRUE(comesTrue([&] { return places.taken() == 0; })) << "nobody keeps a place for ever";
  EXPECT_LT(secondsSince(full), 8.0);
  for (const Fd& line : silent) EXPECT_TRUE(isDropped(line));
}

TEST(FdServer, WhoBelongsHereGetsItsOwnInTheMidstOfAFlood) {
  UnprovenPlaces places(kPlaces);
  transport::FdServer server(kPurpose, places);
  const transport::Ticket kept = server.offer(someFile("kept")).value();
  const transport::LocalName name = transport::socketName(kept.server);
  const LocalStrangers strangers(name);
  EXPECT_TRUE(comesTrue([&] { return places.taken() > 0; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(fetched(server.offer(someFile("one of many")).value()), "one of many");
}

TEST(FdServer, EndsWhileStrangersAreConnected) {
  Fd line;
  {
    transport::FdServer server(kPurpose);
    const transport::Ticket ticket = server.offer(someFile("content")).value();
    line = visitor(ticket);
  }
  EXPECT_TRUE(isDropped(line));
}

/// Uses system calls only: it runs after a fork. 0: the other user was turned away.
int tryAsOtherUser(const transport::LocalName& name, const transport::FdRequest& request) {
  if (::setuid(65534) != 0) return 2;
  const int line = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (::connect(line, name.generic(), name.length) != 0) return 0;
  if (::send(line, &request, sizeof(request), MSG_NOSIGNAL) < 0) return 0;
  char reply = 0;
  return ::recv(line, &reply, 1, 0) > 0 ? 1 : 0;
}

TEST(FdServer, AnotherUserGetsNothingEvenWithATicket) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  transport::FdServer server(kPurpose);
  const transport::Ticket ticket = server.offer(someFile("content")).value();
  const transport::LocalName name = transport::socketName(ticket.server);
  transport::FdRequest request;
  request.item = ticket.item;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(tryAsOtherUser(name, request));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fetched(ticket), "content");
}

TEST(FdFetch, ServerThatNeverAnswersIsGivenUpInTime) {
  const transport::Token token = transport::randomToken().value();
  const transport::LocalName name = transport::socketName(token);
  const Fd mute(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(mute.get(), name.generic(), name.length), 0);
  ASSERT_EQ(::listen(mute.get(), 0), 0);
  // The second finds the queue full already.
  transport::FdFetch fetches[] = {transport::FdFetch({token, {}}, Deadline::in(milliseconds(30))),
                                  transport::FdFetch({token, {}}, Deadline::in(milliseconds(30)))};
  for (transport::FdFetch& fetch : fetches) EXPECT_EQ(fetch.advance(), transport::FetchState::Pending);
  for (transport::FdFetch& fetch : fetches) {
    EXPECT_EQ(finish(fetch), transport::FetchState::Failed);
    EXPECT_NE(fetch.why().find("did not answer in time"), std::string::npos);
  }
}

TEST(FdFetch, ManyAtOnceAllGetTheirOwn) {
  constexpr int kMany = 300;
  transport::FdServer server(kPurpose);
  std::vector<transport::Ticket> tickets;
  std::vector<transport::FdFetch> fetches;
  for (int i = 0; i < kMany; ++i) {
    tickets.push_back(server.offer(someFile(("file " + std::to_string(i)).c_str())).value());
    fetches.emplace_back(tickets.back(), inTime());
  }
  int done = 0;
  std::vector<bool> ended(kMany);
  EXPECT_TRUE(comesTrue([&] {
    for (std::size_t i = 0; i < kMany; ++i) {
      if (ended[i] || fetches[i].advance() == transport::FetchState::Pending) continue;
      ended[i] = true;
      ++done;
    }
    return done == kMany;
  }));
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(contentOf(fetches[i].take()), "file " + std::to_string(i));
}

TEST(FdServer, RefusesToWorkWithoutDescriptorsAndSaysWhy) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Fd file = someFile("content");
  transport::FdServer server(kPurpose);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  allowLog("Too many open files");
  const auto offered = server.offer(std::move(file));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(offered.status().code(), ncclSystemError);
  EXPECT_NE(capturedText().find("ulimit -n"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
