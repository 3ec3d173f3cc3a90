#include "topo/search_route.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <tuple>

namespace tutti {

namespace {

float priceOf(const std::vector<float>& prices, int gpu) {
  return prices.empty() ? 0.0f : prices[static_cast<std::size_t>(gpu)];
}

bool isSingle(unsigned set) {
  return (set & (set - 1)) == 0;
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
std::vector<int> turned(const std::vector<int>& hint, int first, int last) {
  std::vector<int> order{first};
  const auto begin = std::find(hint.begin(), hint.end(), first) - hint.begin();
  const auto n = std::ssize(hint);
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const int gpu = hint[static_cast<std::size_t>((begin + i) % n)];
    if (gpu != first && gpu != last) order.push_back(gpu);
  }
  order.push_back(last);
  return order;
}

/// What no order costs less than: each GPU but the last is left at least at its lowest price, and each but the first
/// entered at least at what is then left of its lowest price.
class HopBound {
 public:
  explicit HopBound(const RoutePrices& prices) {
    const int n = prices.n;
    leave_.assign(static_cast<std::size_t>(n), kNoWay);
    enter_.assign(static_cast<std::size_t>(n), kNoWay);
    for (int a = 0; a < n; ++a) {
      float& leave = leave_[static_cast<std::size_t>(a)];
      for (int b = 0; b < n; ++b) leave = a == b ? leave : std::min(leave, prices.hopPrice(a, b));
      for (int b = 0; b < n; ++b) {
        float& enter = enter_[static_cast<std::size_t>(b)];
        if (a != b) enter = std::min(enter, prices.hopPrice(a, b) - leave);
      }
    }
    for (int a = 0; a < n; ++a) sum_ += leave_[static_cast<std::size_t>(a)] + enter_[static_cast<std::size_t>(a)];
  }

  struct Ends {
    int first = -1;
    int last = -1;
    float price = kNoWay;
  };
  /// Of cycles that cost the same the one that ends just before it begins, so that it goes round once.
  Ends bestEnds(const RoutePrices& prices) const {
    Ends best;
    for (int first = 0; first < prices.n; ++first) {
      const float start = priceOf(prices.start, first) - enter_[static_cast<std::size_t>(first)];
      for (int last = 0; last < prices.n; ++last) {
        if (first == last) continue;
        const float price = sum_ + start + priceOf(prices.end, last) - leave_[static_cast<std::size_t>(last)] +
                            cheapestSecond(prices, first, last);
        const bool closesNearer = prices.closed && price == best.price && last > best.last;
        if (price < best.price || closesNearer) best = {first, last, price};
      }
    }
    return best;
  }

 private:
  static float cheapestSecond(const RoutePrices& prices, int first, int last) {
    if (prices.second.empty()) return 0;
    if (prices.n == 2) return priceOf(prices.second, last);
    float least = kNoWay;
    for (int g = 0; g < prices.n; ++g) {
      if (g != first && g != last) least = std::min(least, priceOf(prices.second, g));
    }
    return least;
  }

  std::vector<float> leave_;
  std::vector<float> enter_;
  float sum_ = 0;
};

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

/// The cheapest way to have visited a set and to stand at one of it, for all sets (Held and Karp): kLanes successors of
/// each set are worked out side by side.
template <int kLanes>
RouteResult Router::exact(const RoutePrices& prices) {
  const int n = prices.n;
  const unsigned full = (1u << n) - 1;
  const auto row = [](unsigned set) { return static_cast<std::size_t>(set) * kLanes; };
  best_.assign(row(full + 1), kNoWay);
  hops_.assign(row(static_cast<unsigned>(n)), kNoWay);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b)
      hops_[row(static_cast<unsigned>(a)) + static_cast<std::size_t>(b)] = prices.hopPrice(a, b);
  }
  for (int g = 0; g < (prices.closed ? 1 : n); ++g) {
    best_[row(1u << g) + static_cast<std::size_t>(g)] = priceOf(prices.start, g);
  }
  steps_ += static_cast<std::int64_t>(full) * n * kLanes / 16;
  for (unsigned set = 1; set < full; ++set) {
    std::array<float, kLanes> next;
    next.fill(kNoWay);
    for (unsigned lasts = set; lasts != 0; lasts &= lasts - 1) {
      const auto last = static_cast<unsigned>(std::countr_zero(lasts));
      const float here = best_[row(set) + last];
      const float* hop = &hops_[row(last)];
      for (std::size_t lane = 0; lane < kLanes; ++lane) next[lane] = std::min(next[lane], here + hop[lane]);
    }
    const bool single = isSingle(set);
    for (unsigned rest = full & ~set; rest != 0; rest &= rest - 1) {
      const int to = std::countr_zero(rest);
      best_[row(set | (1u << to)) + static_cast<std::size_t>(to)] =
          next[static_cast<std::size_t>(to)] + (single ? priceOf(prices.second, to) : 0.0f);
    }
  }
  return cheapestEnding(prices, kLanes);
}

/// Reads the order off the table, from its end.
RouteResult Router::cheapestEnding(const RoutePrices& prices, int lanes) const {
  const int n = prices.n;
  const unsigned full = (1u << n) - 1;
  const auto cell = [&](unsigned set, int last) {
    return best_[static_cast<std::size_t>(set) * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(last)];
  };
  RouteResult result;
  for (int g = 0; g < n; ++g) {
    const float price = cell(full, g) + priceOf(prices.end, g);
    if (price < result.price) result = {{g}, price};
  }
  if (result.order.empty()) return {};
  for (unsigned set = full; !isSingle(set);) {
    const int to = result.order.back();
    set &= ~(1u << to);
    int from = -1;
    float least = 2 * kNoWay;
    for (int g = 0; g < n; ++g) {
      if ((set >> g & 1u) == 0 || cell(set, g) + prices.hopPrice(g, to) >= least) continue;
      least = cell(set, g) + prices.hopPrice(g, to);
      from = g;
    }
    result.order.push_back(from);
  }
  std::reverse(result.order.begin(), result.order.end());
  return result;
}

RouteResult Router::find(const RoutePrices& prices, const std::vector<int>& hint) {
  if (prices.n == 1) return {{0}, priceOf(prices.start, 0) + priceOf(prices.end, 0)};
  RouteResult result = withBestEnds(prices, hint);
  if (!result.order.empty()) return result;
  if (prices.n > kExactGpus) return beam(prices, hint);
  return prices.n <= 8 ? exact<8>(prices) : exact<kExactGpus>(prices);
}

/// The hint's order between the ends that are best by a bound on all orders, if it is as cheap as the bound. So it is
/// where leaving a GPU and entering one have their prices whatever the other end is: at one NVSwitch.
RouteResult Router::withBestEnds(const RoutePrices& prices, const std::vector<int>& hint) {
  const HopBound bound(prices);
  steps_ += static_cast<std::int64_t>(prices.n) * prices.n * 2;
  const HopBound::Ends ends = bound.bestEnds(prices);
  if (ends.price >= kNoWay) return {};
  std::vector<int> order = turned(hint, ends.first, ends.last);
  if (!prices.second.empty() && prices.n > 2) {
    const auto second = std::min_element(order.begin() + 1, order.end() - 1, [&](int a, int b) {
      return priceOf(prices.second, a) < priceOf(prices.second, b);
    });
    std::rotate(order.begin() + 1, second, second + 1);
  }
  const float price = routePrice(prices, order);
  if (price > ends.price * 1.0001f) return {};
  return {std::move(order), price};
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
    offer(turned(hint, first, last));
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

}  // namespace tutti
