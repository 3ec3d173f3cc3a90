// A network plugin over UNIX sockets that receives up to eight messages at once, and matches them as strictly as
// networks for RDMA do: the receiver tells the sender of each receive that it posts; a message goes into a free place
// of its tag in the oldest one that has not got all of its messages, or is refused; and only when all are there do they
// leave, as one.
//
// MULTI_NET is a comma list: "gdr": it reads and writes GPU memory; "busy": one post of three has no room.
// The log says of each receiving end how many receives it has had, and of how many messages at most.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "examples/plugins/unix_net/transport.h"
#include "nccl_net.h"
#include "plugin/network/test_net_memory.h"

namespace {

constexpr int kMostRecvs = 8;
ncclDebugLogger_t logger;
tutti::test::TestNetMemory memory;

#define WARN(...) logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, __VA_ARGS__)
#define INFO(...) logger(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, __VA_ARGS__)

bool told(const char* word) {
  const char* const said = std::getenv("MULTI_NET");
  return said != nullptr && std::strstr(said, word) != nullptr;
}

struct Comm;

/// A send, a receive of several messages, or a flush.
struct Request {
  Comm* comm = nullptr;
  int n = 1;
  bool done = false;
  std::array<char*, kMostRecvs> data{};
  std::array<std::uint64_t, kMostRecvs> bytes{};  ///< a receive: how much fits, and then how much came
};

/// What a receiver tells of a receive.
struct Posted {
  std::uint64_t n = 0;
  std::array<std::int64_t, kMostRecvs> tags{};
  std::array<std::uint64_t, kMostRecvs> room{};
};
/// In front of the messages of a receive.
using Sizes = std::array<std::uint64_t, kMostRecvs>;

/// Bytes on their way in one direction, from or to several places.
class Transfer {
 public:
  void add(void* data, std::size_t bytes) {
    if (bytes > 0) parts_.push_back({data, bytes});
  }
  bool done() const { return at_ == parts_.size(); }
  /// Moves what the socket takes or has; false: nothing. Errors in errno, with `failed`.
  bool move(int fd, bool out, std::string& error) {
    if (done()) return false;
    msghdr message{};
    message.msg_iov = parts_.data() + at_;
    message.msg_iovlen = parts_.size() - at_;
    const ssize_t bytes =
        out ? ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) : ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (bytes == 0) error = "the peer closed the connection";
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) error = std::strerror(errno);
    for (std::size_t left = bytes > 0 ? static_cast<std::size_t>(bytes) : 0; left > 0;) {
      iovec& part = parts_[at_];
      const std::size_t n = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + n;
      part.iov_len -= n;
      left -= n;
      if (part.iov_len == 0) ++at_;
    }
    return bytes > 0;
  }

 private:
  std::vector<iovec> parts_;
  std::size_t at_ = 0;
};

struct Comm {
  Comm(unix_net::Connection* made, bool sender) : socket(made), sends(sender) {}
  ~Comm() {
    if (!sends) INFO("multi_net: %lu receives of up to %d messages", static_cast<unsigned long>(receives), most);
    for (Request* request : requests) delete request;
  }
  Comm(const Comm&) = delete;

  Request* request(int n) {
    if (requests.size() == static_cast<std::size_t>(NCCL_NET_MAX_REQUESTS * (sends ? kMostRecvs : 1))) {
      error = "more requests than a network has to have";  // a network may refuse, but need not notice
      return nullptr;
    }
    auto* const made = new Request{.comm = this, .n = n};
    requests.insert(made);
    return made;
  }
  void forget(Request* request) {
    requests.erase(request);
    delete request;
  }

  // ---- the sender's

  struct Place {
    Posted posted;
    std::array<Request*, kMostRecvs> sends{};
    std::uint64_t filled = 0;
    Sizes sizes{};
    Transfer out;
  };
  /// Null: not now.
  Request* send(char* data, std::size_t bytes, int tag) {
    progress();
    for (Place& place : places) {
      if (place.filled == place.posted.n) continue;
      for (std::size_t i = 0; i < place.posted.n; ++i) {
        if (place.posted.tags[i] == tag && place.sends[i] == nullptr) return fill(place, i, data, bytes);
      }
      return nullptr;
    }
    return nullptr;
  }
  Request* fill(Place& place, std::size_t i, char* data, std::size_t bytes) {
    if (bytes > place.posted.room[i]) error = "a message is longer than its receive";
    Request* const made = error.empty() ? request(1) : nullptr;
    if (made == nullptr) return nullptr;
    made->data[0] = data;
    made->bytes[0] = place.sizes[i] = bytes;
    place.sends[i] = made;
    if (++place.filled == place.posted.n) {
      place.out.add(place.sizes.data(), sizeof(Sizes));
      for (std::size_t k = 0; k < place.posted.n; ++k) place.out.add(place.sends[k]->data[0], place.sizes[k]);
    }
    progress();
    return made;
  }
  void hear() {
    for (;;) {
      if (heard.done()) {
        heard = {};
        heard.add(&hearing, sizeof(hearing));
      }
      if (!heard.move(socket->fd, false, error)) return;
      if (heard.done()) places.emplace_back().posted = hearing;
    }
  }
  void progressSender() {
    hear();
    while (error.empty() && !places.empty() && places.front().filled == places.front().posted.n) {
      Place& oldest = places.front();
      const bool moved = oldest.out.move(socket->fd, true, error);
      if (oldest.out.done()) {
        for (std::size_t i = 0; i < oldest.posted.n; ++i) oldest.sends[i]->done = true;
        places.pop_front();
      } else if (!moved) {
        return;
      }
    }
  }

  // ---- the receiver's

  Request* receive(int n, void** data, const std::size_t* sizes, const int* tags) {
    Request* const made = request(n);
    if (made == nullptr) return nullptr;
    Posted& post = telling.emplace_back().posted;
    post.n = static_cast<std::uint64_t>(n);
    for (std::size_t i = 0; i < post.n; ++i) {
      made->data[i] = static_cast<char*>(data[i]);
      made->bytes[i] = post.room[i] = sizes[i];
      post.tags[i] = tags[i];
    }
    telling.back().out.add(&telling.back().posted, sizeof(Posted));
    waiting.push_back(made);
    ++receives;
    most = std::max(most, n);
    progress();
    return made;
  }
  void progressReceiver() {
    // A peer that is gone and cannot be told may have sent what is still to be read; reading finds the end.
    std::string gone;
    while (gone.empty() && !telling.empty()) {
      const bool moved = telling.front().out.move(socket->fd, true, gone);
      if (telling.front().out.done()) {
        telling.pop_front();
      } else if (!moved) {
        break;
      }
    }
    while (error.empty() && !waiting.empty() && fillOldest()) {
    }
  }
  bool moveIn() {
    while (!in.done()) {
      if (!in.move(socket->fd, false, error)) return false;
    }
    return true;
  }
  /// Whether the oldest receive has come to its end.
  bool fillOldest() {
    Request& oldest = *waiting.front();
    if (stage == Stage::Between) {
      in = {};
      in.add(&came, sizeof(Sizes));
      stage = Stage::Header;
    }
    if (!moveIn()) return false;
    if (stage == Stage::Header) {
      in = {};
      for (std::size_t i = 0; i < static_cast<std::size_t>(oldest.n); ++i) in.add(oldest.data[i], came[i]);
      stage = Stage::Content;
    }
    if (!moveIn()) return false;
    oldest.bytes = came;
    oldest.done = true;
    waiting.pop_front();
    stage = Stage::Between;
    return true;
  }

  void progress() {
    if (!error.empty()) return;
    sends ? progressSender() : progressReceiver();
  }

  std::unique_ptr<unix_net::Connection> socket;
  bool sends;
  std::string error;
  std::set<Request*> requests;
  std::minstd_rand dice{7};
  std::deque<Place> places;
  Posted hearing;
  Transfer heard;
  struct Telling {
    Posted posted;
    Transfer out;
  };
  std::deque<Telling> telling;
  std::deque<Request*> waiting;
  enum class Stage : std::uint8_t { Between, Header, Content } stage = Stage::Between;
  Sizes came{};
  Transfer in;
  std::uint64_t receives = 0;
  int most = 0;
};

// ---- the table

ncclResult_t init(void** ctx, std::uint64_t, ncclNetCommConfig_v12_t*, ncclDebugLogger_t log, ncclProfilerCallback_t) {
  if (logger == nullptr) logger = log;
  *ctx = nullptr;
  return ncclSuccess;
}
ncclResult_t finalize(void*) {
  return ncclSuccess;
}
ncclResult_t devices(int* count) {
  *count = 1;
  return ncclSuccess;
}
ncclResult_t getProperties(int device, ncclNetProperties_v12_t* props) {
  static char name[] = "multi0";
  *props = {};
  props->name = name;
  props->guid = 1;
  props->ptrSupport = told("gdr") ? NCCL_PTR_HOST | NCCL_PTR_CUDA : NCCL_PTR_HOST;
  props->speed = 40000;
  props->port = 1;
  props->maxComms = 65536;
  props->maxRecvs = kMostRecvs;
  props->vProps.ndevs = 1;
  props->vProps.devs[0] = device;
  props->maxP2pBytes = MAX_NET_SIZE;
  props->maxCollBytes = MAX_COLLNET_SIZE;
  props->railId = props->planeId = NCCL_NET_ID_UNDEF;
  return ncclSuccess;
}
ncclResult_t listen(void*, int, void* handle, void** listener) {
  *listener = unix_net::listen(*static_cast<unix_net::Handle*>(handle));
  if (*listener != nullptr) return ncclSuccess;
  WARN("multi_net: no socket to listen on: %s", std::strerror(errno));
  return ncclSystemError;
}
ncclResult_t connect(void*, int, void* handle, void** connection, ncclNetDeviceHandle_t**) {
  auto* const made = unix_net::connect(*static_cast<unix_net::Handle*>(handle));
  *connection = made == nullptr ? nullptr : new Comm(made, true);
  if (made != nullptr || errno == EAGAIN) return ncclSuccess;
  WARN("multi_net: connecting failed: %s", std::strerror(errno));
  return ncclRemoteError;
}
ncclResult_t accept(void* listener, void** connection, ncclNetDeviceHandle_t**) {
  auto* const made = unix_net::accept(*static_cast<unix_net::Listener*>(listener));
  *connection = made == nullptr ? nullptr : new Comm(made, false);
  if (made != nullptr || errno == EAGAIN) return ncclSuccess;
  WARN("multi_net: accepting failed: %s", std::strerror(errno));
  return ncclSystemError;
}
ncclResult_t regMr(void* comm, void* data, std::size_t bytes, int type, void** mhandle) {
  *mhandle = data;
  const bool onGpu = type == NCCL_PTR_CUDA && told("gdr");
  if ((type == NCCL_PTR_HOST || onGpu) && memory.enter(comm, data, bytes, onGpu)) return ncclSuccess;
  WARN("multi_net: this memory cannot be registered");
  return ncclInternalError;
}
ncclResult_t deregMr(void* comm, void* mhandle) {
  memory.leave(comm, mhandle);
  return ncclSuccess;
}

ncclResult_t answer(Comm& comm, Request* made, void** request) {
  *request = made;
  if (comm.error.empty()) return ncclSuccess;
  WARN("multi_net: %s failed: %s", comm.sends ? "sending" : "receiving", comm.error.c_str());
  return ncclRemoteError;
}
bool busy(Comm& comm) {
  static const bool kBusy = told("busy");
  return kBusy && comm.dice() % 3 == 0;  // not in turn: it could be the same lane's turn every time
}
ncclResult_t isend(void* to, void* data, std::size_t bytes, int tag, void* mhandle, void*, void** request) {
  auto& comm = *static_cast<Comm*>(to);
  Request* const made = busy(comm) ? nullptr : comm.send(static_cast<char*>(data), bytes, tag);
  if (made != nullptr) memory.send(to, data, bytes, mhandle);
  return answer(comm, made, request);
}
ncclResult_t irecv(void* from, int n, void** data, std::size_t* sizes, int* tags, void**, void**, void** request) {
  auto& comm = *static_cast<Comm*>(from);
  if (n < 1 || n > kMostRecvs) comm.error = "so many receives were not promised";
  if (!comm.error.empty()) return answer(comm, nullptr, request);
  return answer(comm, busy(comm) ? nullptr : comm.receive(n, data, sizes, tags), request);
}
/// A request that the second test finds done.
ncclResult_t iflush(void* from, int n, void**, int* sizes, void**, void** request) {
  auto& comm = *static_cast<Comm*>(from);
  for (int i = 0; i < n; ++i) {
    if (sizes[i] <= 0) comm.error = "nothing is to be flushed";
  }
  if (!comm.error.empty()) return answer(comm, nullptr, request);
  *request = new Request{.comm = nullptr};
  return ncclSuccess;
}
ncclResult_t test(void* posted, int* done, int* sizes) {
  auto* const request = static_cast<Request*>(posted);
  *done = request->done ? 1 : 0;
  if (request->comm == nullptr) {  // a flush
    if (request->done)
      delete request;
    else
      request->done = true;
    return ncclSuccess;
  }
  Comm& comm = *request->comm;
  if (!request->done) comm.progress();
  *done = request->done ? 1 : 0;
  if (!request->done) return answer(comm, request, &posted);
  for (std::size_t i = 0; sizes != nullptr && i < static_cast<std::size_t>(request->n); ++i) {
    sizes[i] = static_cast<int>(request->bytes[i]);
  }
  comm.forget(request);
  return ncclSuccess;
}
template <class T>
ncclResult_t close(void* object) {
  memory.close(object);
  delete static_cast<T*>(object);
  return ncclSuccess;
}

}  // namespace

extern "C" {
NCCL_PLUGIN_EXPORT tutti::test::TestNetMemory* testNetMemory() {
  return &memory;
}

NCCL_PLUGIN_EXPORT ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = "multi",
    .init = init,
    .devices = devices,
    .getProperties = getProperties,
    .listen = listen,
    .connect = connect,
    .accept = accept,
    .regMr = regMr,
    .deregMr = deregMr,
    .isend = isend,
    .irecv = irecv,
    .iflush = iflush,
    .test = test,
    .closeSend = close<Comm>,
    .closeRecv = close<Comm>,
    .closeListen = close<unix_net::Listener>,
    .finalize = finalize,
};
}
