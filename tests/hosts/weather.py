#!/usr/bin/env python3
"""Slow, lossy and narrow networks: reductions go on, and results stay right."""
from echo import Echo, check_cut
from jobs import Survivors, conform
from namespaces import Lab, Weather, check, run_in_sandbox


def weather_is_as_ordered():
    with Lab(2, weather=Weather(delay=0.02)) as lab, Echo(lab) as echo:
        trips = echo.ask(rounds=5)
        check(trips and 0.04 <= min(trips) < 0.2, f"round trips of 20 ms each way take {trips}")
        check_cut(lab, echo)
    with Lab(2, weather=Weather(loss=0.1)) as lab, Echo(lab) as echo:
        trips = echo.ask(number=200000, rounds=3, seconds=20)
        again = [host.segments_sent_again() for host in lab.hosts]
        check(trips and sum(again) > 10, f"nothing was lost: {trips}, sent again: {again}")
    with Lab(2, weather=Weather(rate=20e6)) as lab, Echo(lab) as echo:
        trips = echo.ask(number=1_000_000, seconds=20)
        check(trips and 0.4 <= min(trips), f"8 Mbit at 20 Mbit/s take {trips}")


def latency():
    with Lab(2, weather=Weather(delay=0.02)) as lab, Survivors(lab) as ranks:
        ranks.wait_for("reduced 4")


def loss():
    with Lab(2, weather=Weather(loss=0.01)) as lab, Survivors(lab) as ranks:
        ranks.wait_for("reduced 4")
        check(any(host.segments_sent_again() for host in lab.hosts), "nothing was lost")


def narrowness():
    with Lab(2, weather=Weather(rate=200e6)) as lab, Survivors(lab) as ranks:
        ranks.wait_for("reduced 4")


def storm():
    """All at once, and results are looked at."""
    with Lab(2, weather=Weather(delay=0.0005, loss=0.002, rate=300e6)) as lab:
        conform(lab, only="sendrecv")


if __name__ == "__main__":
    run_in_sandbox(weather_is_as_ordered, latency, loss, narrowness, storm)
