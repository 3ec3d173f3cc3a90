#include "topo/search/route.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace tutti::topo {

namespace {

float priceOf(const std::vector<float>& prices, int gpu) {
  return prices.empty() ? 0.0f : prices[static_cast<std::size_t>(gpu)];
}

/// A beginning of an order.
struct Partial {
  std::vector<int> order;
  std::vector<bool> used;
  float price = 0;
};

struct Extension {
  float price = 0;
  int partial = 0;
  int gpu = 0;
};

/// GPUs behind the current one first, so that equal prices give orders that follow the machine's.
int distanceAfter(int from, int to, int n) {
  return (to - from + n) % n;
}

bool isBetter(const Extension& a, const Extension& b, const std::vector<Partial>& partials, int n) {
  if (a.price != b.price) return a.price < b.price;
  if (a.partial != b.partial) return a.partial < b.partial;
  const int from = partials[static_cast<std::size_t>(a.partial)].order.back();
  return distanceAfter(from, a.gpu, n) < distanceAfter(from, b.gpu, n);
}

std::vector<Partial> extend(const std::vector<Partial>& partials, std::vector<Extension>& extensions, int width) {
  const int n = static_cast<int>(partials.front().used.size());
  const auto keep = std::min(extensions.size(), static_cast<std::size_t>(width));
  std::partial_sort(extensions.begin(), extensions.begin() + static_cast<std::ptrdiff_t>(keep), extensions.end(),
                    [&](const Extension& a, const Extension& b) { return isBetter(a, b, partials, n); });
  std::vector<Partial> longer;
  for (std::size_t i = 0; i < keep; ++i) {
    Partial next = partials[static_cast<std::size_t>(extensions[i].partial)];
    next.order.push_back(extensions[i].gpu);
    next.used[static_cast<std::size_t>(extensions[i].gpu)] = true;
    next.price = extensions[i].price;
    longer.push_back(std::move(next));
  }
  return longer;
}

/// The pairs of ends that cost least by themselves.
std::vector<std::pair<int, int>> cheapestEnds(const RoutePrices& prices, int atMost) {
  struct Ends {
    float price;
    int away;
    int first;
    int last;
  };
  std::vector<Ends> all;
  for (int first = 0; first < prices.n; ++first) {
    if (prices.closed && first != 0) break;
    for (int last = 0; last < prices.n; ++last) {
      const float price = priceOf(prices.start, first) + priceOf(prices.end, last);
      if (last != first && price < kNoWay) all.push_back({price, distanceAfter(last, first, prices.n), first, last});
    }
  }
  const auto keep = std::min(all.size(), static_cast<std::size_t>(atMost));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(keep), all.end(),
                    [](const Ends& a, const Ends& b) {
                      return std::tuple(a.price, a.away, a.first) < std::tuple(b.price, b.away, b.first);
                    });
  std::vector<std::pair<int, int>> ends;
  for (std::size_t i = 0; i < keep; ++i) ends.emplace_back(all[i].first, all[i].last);
  return ends;
}

/// The hint's order with the wanted ends.
void turn(const std::vector<int>& hint, int first, int last, std::vector<int>& order) {
  order.clear();
  order.push_back(first);
  const auto begin = std::find(hint.begin(), hint.end(), first);
  const auto take = [&](int gpu) {
    if (gpu != first && gpu != last) order.push_back(gpu);
  };
  std::for_each(begin, hint.end(), take);
  std::for_each(hint.begin(), begin, take);
  order.push_back(last);
}

/// Price of the hops and, for the first three places, of being second, around positions [from, to] of an order.
float spanPrice(const RoutePrices& prices, const std::vector<int>& order, int from, int to) {
  float sum = 0;
  for (int i = std::max(from, 1); i <= to; ++i) {
    const int gpu = order[static_cast<std::size_t>(i)];
    sum += prices.hopPrice(order[static_cast<std::size_t>(i) - 1], gpu);
    if (i == 1) sum += priceOf(prices.second, gpu);
  }
  return sum;
}

/// Moves the run of `length` at `from` to begin at `to` if that is cheaper.
bool moveIfCheaper(const RoutePrices& prices, std::vector<int>& order, int from, int length, int to) {
  const int low = std::min(from, to);
  const int high = std::max(from, to) + length;
  const float before = spanPrice(prices, order, low, high);
  const auto at = [&](int i) { return order.begin() + i; };
  if (to < from) {
    std::rotate(at(to), at(from), at(from + length));
  } else {
    std::rotate(at(from), at(from + length), at(to + length));
  }
  if (spanPrice(prices, order, low, high) < before * 0.9999f) return true;
  if (to < from) {
    std::rotate(at(to), at(to + length), at(from + length));
  } else {
    std::rotate(at(from), at(to), at(to + length));
  }
  return false;
}

}  // namespace

float routePrice(const RoutePrices& prices, const std::vector<int>& order) {
  const int n = static_cast<int>(order.size());
  float sum = priceOf(prices.start, order.front()) + priceOf(prices.end, order.back());
  return sum + spanPrice(prices, order, 1, n - 1);
}

std::int64_t improveOrder(const RoutePrices& prices, std::vector<int>& order) {
  const int n = static_cast<int>(order.size());
  std::int64_t steps = 0;
  for (bool better = true; better && steps < 4000LL * n;) {
    better = false;
    for (int length = 1; length <= 3; ++length) {
      for (int from = 1; from + length < n; ++from) {
        for (int to = 1; to + length < n; ++to) {
          if (to == from) continue;
          steps += std::abs(to - from) + length;
          if (moveIfCheaper(prices, order, from, length, to)) better = true;
        }
      }
    }
  }
  return steps;
}

const RouteResult& Router::find(const RoutePrices& prices, const std::vector<int>& hint, const RouteWish& wish) {
  const int n = prices.n;
  found_.order.clear();
  found_.price = kNoWay;
  if (n == 1) {
    found_.order.push_back(0);
    found_.price = prices.start[0] + prices.end[0];
    return found_;
  }
  if (!wish.sameHops) {
    bound_.set(prices);
    hasHops_ = false;
  }
  steps_ += static_cast<std::int64_t>(n) * n * 2;
  const BoundEnds ends = bound_.bestEnds(prices);
  if (ends.price < kNoWay && tryEnds(prices, hint, ends)) return found_;
  if (n > kExactGpus) {
    found_ = beam(prices, hint);
    return found_;
  }
  const int lanes = n <= 8 ? 8 : kExactGpus;  // as many steps, however they are worked out
  steps_ += static_cast<std::int64_t>((1u << n) - 1) * n * lanes / 16;
  if (bound_.isAbove(ends, wish.limit)) return found_;
  if (!hasHops_) exact_.setHops(prices);
  hasHops_ = true;
  exact_.find(prices, found_);
  return found_;
}

/// The hint's order between the ends that are best by a bound on all orders, if it is as cheap as the bound. So it is
/// where leaving a GPU and entering one have their prices whatever the other end is: at one NVSwitch.
bool Router::tryEnds(const RoutePrices& prices, const std::vector<int>& hint, const BoundEnds& ends) {
  std::vector<int>& order = found_.order;
  turn(hint, ends.first, ends.last, order);
  if (!prices.second.empty() && prices.n > 2) {
    const auto second = std::min_element(order.begin() + 1, order.end() - 1, [&](int a, int b) {
      return priceOf(prices.second, a) < priceOf(prices.second, b);
    });
    std::rotate(order.begin() + 1, second, second + 1);
  }
  const float price = routePrice(prices, order);
  if (price <= ends.price * 1.0001f) {
    found_.price = price;
    return true;
  }
  order.clear();
  return false;
}

RouteResult Router::beam(const RoutePrices& prices, const std::vector<int>& hint) {
  RouteResult best;
  const auto offer = [&](std::vector<int> order) {
    if (order.empty()) return;
    steps_ += prices.n <= 24 ? improveOrder(prices, order) : 0;
    const float price = routePrice(prices, order);
    if (price < best.price) best = {std::move(order), price};
  };
  for (const auto& [first, last] : cheapestEnds(prices, prices.n <= 24 ? 4 : 2)) {
    offer(between(prices, first, last).order);
    std::vector<int> order;
    turn(hint, first, last, order);
    offer(std::move(order));
  }
  return best;
}

/// A beam search from one end to the other.
RouteResult Router::between(const RoutePrices& prices, int first, int last) {
  const int n = prices.n;
  const int width = n <= 24 ? 16 : 2;
  std::vector<Partial> partials(1);
  partials[0].order = {first};
  partials[0].used.assign(static_cast<std::size_t>(n), false);
  partials[0].used[static_cast<std::size_t>(first)] = true;
  partials[0].used[static_cast<std::size_t>(last)] = true;
  std::vector<Extension> extensions;
  for (int place = 1; place < n; ++place) {
    extensions.clear();
    for (std::size_t p = 0; p < partials.size(); ++p) {
      const Partial& partial = partials[p];
      const int from = partial.order.back();
      for (int gpu = 0; gpu < n; ++gpu) {
        if (place == n - 1 ? gpu != last : partial.used[static_cast<std::size_t>(gpu)]) continue;
        const float more = prices.hopPrice(from, gpu) + (place == 1 ? priceOf(prices.second, gpu) : 0.0f);
        ++steps_;
        if (more < kNoWay) extensions.push_back({partial.price + more, static_cast<int>(p), gpu});
      }
    }
    if (extensions.empty()) return {};
    partials = extend(partials, extensions, width);
  }
  RouteResult result{partials[0].order, 0};
  result.price = routePrice(prices, result.order);
  return result;
}

}  // namespace tutti::topo
