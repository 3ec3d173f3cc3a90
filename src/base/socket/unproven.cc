#include "base/socket/unproven.h"

#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>

#include "base/socket/address.h"

namespace tutti {

namespace {

std::size_t descriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

}  // namespace

std::size_t unprovenPlaces(std::size_t descriptors) {
  return std::clamp<std::size_t>(descriptors / 16, 4, 48);
}

struct UnprovenPlaces::Book {
  std::mutex mutex;
  std::list<Address> hosts;
};

UnprovenPlaces::UnprovenPlaces(std::size_t limit) : limit_(limit), book_(std::make_shared<Book>()) {}

UnprovenPlaces& UnprovenPlaces::ofProcess() {
  // Never destroyed: threads that end after main() may still give places back.
  static auto* const places = new UnprovenPlaces(unprovenPlaces(descriptorLimit()));
  return *places;
}

UnprovenPlaces::Place UnprovenPlaces::takeLocal() {
  return take({});
}

UnprovenPlaces::Place UnprovenPlaces::take(const Address& host) {
  Address at = host;
  at.setPort(0);
  const std::lock_guard lock(book_->mutex);
  auto& hosts = book_->hosts;
  if (hosts.size() >= limit_) return {};
  const auto ofHost = static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), at));
  if (2 * ofHost >= limit_) return {};
  hosts.push_back(at);
  Place place;
  place.held_ = std::shared_ptr<void>(&hosts.back(), [book = book_, entry = std::prev(hosts.end())](void*) {
    const std::lock_guard guard(book->mutex);
    book->hosts.erase(entry);
  });
  return place;
}

std::size_t UnprovenPlaces::taken() const {
  const std::lock_guard lock(book_->mutex);
  return book_->hosts.size();
}

}  // namespace tutti
