#include "base/socket/unproven.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/socket/address.h"

namespace tutti {
namespace {

Address host(int number, int port) {
  return Address::parse("10.0.0." + std::to_string(number) + ":" + std::to_string(port)).value();
}

TEST(Unproven, TheShareOfTheDescriptorsIsSmallAndNeverNothing) {
  EXPECT_EQ(unprovenPlaces(20), 4u);
  EXPECT_EQ(unprovenPlaces(256), 16u);
  EXPECT_EQ(unprovenPlaces(1024), 48u);
  EXPECT_EQ(unprovenPlaces(1 << 20), 48u);
}

TEST(Unproven, OneHostHasHalfOfThePlacesWhateverItsPorts) {
  UnprovenPlaces places(6);
  std::vector<UnprovenPlaces::Place> taken;
  for (int port = 1; port <= 3; ++port) taken.push_back(places.take(host(1, port)));
  for (const auto& place : taken) EXPECT_TRUE(place.taken());
  EXPECT_FALSE(places.take(host(1, 4)).taken());
  EXPECT_TRUE(places.take(host(2, 1)).taken());
}

TEST(Unproven, WhoComesLastGoesAndAPlaceGivenBackIsFree) {
  UnprovenPlaces places(4);
  std::vector<UnprovenPlaces::Place> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(places.take(host(i, 1)));
  EXPECT_FALSE(places.take(host(9, 1)).taken());
  EXPECT_TRUE(taken[0].taken()) << "who has a place keeps it";
  taken[1].giveBack();
  EXPECT_FALSE(taken[1].taken());
  const auto moved = std::move(taken[2]);
  EXPECT_EQ(places.taken(), 3u);
  EXPECT_TRUE(places.take(host(9, 1)).taken());
}

TEST(Unproven, APlaceMayOutliveThePlaces) {
  UnprovenPlaces::Place place;
  {
    UnprovenPlaces places(4);
    place = places.take(host(1, 1));
  }
  EXPECT_TRUE(place.taken());
  place.giveBack();
}

}  // namespace
}  // namespace tutti
