#include "net.h"

#include <list>
#include <map>
#include <mutex>
#include <random>

#include "settings.h"

namespace switch_collnet::net {

namespace {

/// What listen() tells connect(). The number is shown with the first frame, for anybody can connect to a port.
struct Handle {
  std::uint64_t number[2];
  Address address;
};

/// Has connected, but not yet shown the number.
struct Visitor {
  Stream stream;
  std::uint64_t shown[2] = {0, 0};
};

struct Listener {
  Handle handle{};
  Fd fd;
  std::list<Visitor> visitors;
};

struct Connection;

struct Request {
  Connection* connection = nullptr;
  bool busy = false;
  bool done = false;
  char* data = nullptr;     // of a receive
  std::size_t bytes = 0;    // a receive: how much fits, then how much came
  std::uint64_t place = 0;  // a send: it is done when so many frames have left
};

/// One direction. Sends leave, and receives are filled, in the order in which they were posted.
struct Connection {
  Stream stream;
  bool sends = false;
  Request requests[NCCL_NET_MAX_REQUESTS];
  std::deque<Request*> receives;  // under way, oldest first

  Connection(Stream s, bool sender) : stream(std::move(s)), sends(sender) {}

  Request* free() {
    for (Request& request : requests) {
      if (!request.busy) return &request;
    }
    return nullptr;
  }
  /// Moves what can be moved now.
  void progress() {
    stream.flush();
    // A sender reads as well: that is how it learns that the receiver is gone.
    while (sends || !receives.empty()) {
      const auto frame = stream.receive([&](const Frame& f) { return placeOf(f); });
      if (!frame) return;
      receives.front()->bytes = frame->payload;
      receives.front()->done = true;
      receives.pop_front();
    }
  }

 private:
  char* placeOf(const Frame& frame) {
    if (sends || frame.kind != Kind::Message) {
      stream.fail("a frame came that nobody expects");
    } else if (frame.payload > receives.front()->bytes) {
      stream.fail("a message is longer than its receive");
    }
    return stream.alive() ? receives.front()->data : nullptr;
  }
};

/// Connections that are being made, by the number in their handle.
std::mutex begunMutex;
std::map<std::uint64_t, Stream> begun;

ncclResult_t broken(const char* call, const Connection& connection) {
  return failed(ncclRemoteError, call, connection.stream.error());
}

}  // namespace

ncclResult_t listen(int, void* handle, void** listener) {
  Settings settings;
  if (const std::string why = settings.read(); !why.empty()) return failed(ncclInvalidUsage, "listen", why);
  auto made = std::make_unique<Listener>();
  std::random_device random;
  for (std::uint64_t& word : made->handle.number) word = std::uint64_t{random()} << 32 | random();
  made->handle.address = settings.host;
  made->fd = listenAt(made->handle.address);
  if (!made->fd.valid()) {
    return failed(ncclSystemError, "listen", settings.host.text() + ": " + std::strerror(errno));
  }
  std::memcpy(handle, &made->handle, sizeof(made->handle));
  *listener = made.release();
  return ncclSuccess;
}

ncclResult_t connect(int, void* handle, void** connection) {
  *connection = nullptr;
  Handle peer;
  std::memcpy(&peer, handle, sizeof(peer));
  const std::lock_guard lock(begunMutex);
  auto found = begun.find(peer.number[0]);
  if (found == begun.end()) found = begun.emplace(peer.number[0], Stream(connectTo(peer.address))).first;
  const bool valid = found->second.fd().valid();
  const int state = valid ? connectState(found->second.fd()) : errno;
  if (state == EINPROGRESS) return ncclSuccess;
  Stream stream = std::move(found->second);
  begun.erase(found);
  if (state != 0) return failed(ncclRemoteError, "connect", peer.address.text() + ": " + std::strerror(state));
  const auto* const number = reinterpret_cast<const char*>(peer.number);
  stream.send({.kind = Kind::Hello}, std::make_shared<const Bytes>(number, number + sizeof(peer.number)));
  stream.flush();
  *connection = new Connection(std::move(stream), true);
  return ncclSuccess;
}

ncclResult_t accept(void* listener, void** connection) {
  *connection = nullptr;
  auto& its = *static_cast<Listener*>(listener);
  for (Fd fd = acceptFrom(its.fd); fd.valid(); fd = acceptFrom(its.fd)) {
    its.visitors.push_back({Stream(std::move(fd)), {}});
  }
  for (Visitor& visitor : its.visitors) {
    const auto frame = visitor.stream.receive([&](const Frame& f) {
      return f.payload == sizeof(visitor.shown) ? reinterpret_cast<char*>(visitor.shown) : nullptr;
    });
    if (!frame) continue;
    if (std::memcmp(visitor.shown, its.handle.number, sizeof(visitor.shown)) == 0) {
      *connection = new Connection(std::move(visitor.stream), false);
      break;
    }
    visitor.stream.fail("a stranger");
  }
  its.visitors.remove_if([](const Visitor& v) { return !v.stream.alive() || !v.stream.fd().valid(); });
  return ncclSuccess;
}

ncclResult_t registerMemory(int type, void** handle) {
  *handle = nullptr;  // sockets take any memory as it is
  Settings settings;
  settings.read();
  const bool known = type == NCCL_PTR_HOST || (type == NCCL_PTR_CUDA && settings.gpuMemory);
  return known ? ncclSuccess : failed(ncclInternalError, "regMr", "memory of that kind is not in ptrSupport");
}

ncclResult_t isend(void* connection, void* data, std::size_t bytes, void** request) {
  auto& its = *static_cast<Connection*>(connection);
  *request = nullptr;
  if (!its.stream.alive()) return broken("isend", its);
  Request* const free = its.free();
  if (free == nullptr) return ncclSuccess;
  its.stream.send({.kind = Kind::Message}, data, bytes);
  *free = {.connection = &its, .busy = true, .bytes = bytes, .place = its.stream.posted()};
  its.progress();
  *request = free;
  return ncclSuccess;
}

ncclResult_t irecv(void* connection, void* data, std::size_t room, void** request) {
  auto& its = *static_cast<Connection*>(connection);
  *request = nullptr;
  if (!its.stream.alive()) return broken("irecv", its);
  Request* const free = its.free();
  if (free == nullptr) return ncclSuccess;
  *free = {.connection = &its, .busy = true, .data = static_cast<char*>(data), .bytes = room};
  its.receives.push_back(free);
  its.progress();
  *request = free;
  return ncclSuccess;
}

ncclResult_t test(void* request, int* done, int* sizes) {
  auto& its = *static_cast<Request*>(request);
  Connection& connection = *its.connection;
  const auto finished = [&] { return connection.sends ? connection.stream.sent() >= its.place : its.done; };
  if (!finished()) connection.progress();
  *done = finished() ? 1 : 0;
  if (*done == 0) return connection.stream.alive() ? ncclSuccess : broken("test", connection);
  if (sizes != nullptr) sizes[0] = static_cast<int>(its.bytes);
  its.busy = false;
  return ncclSuccess;
}

ncclResult_t closeListen(void* listener) {
  delete static_cast<Listener*>(listener);
  return ncclSuccess;
}

ncclResult_t closeConnection(void* connection) {
  delete static_cast<Connection*>(connection);
  return ncclSuccess;
}

}  // namespace switch_collnet::net
