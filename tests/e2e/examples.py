#!/usr/bin/env python3
"""The examples do what their comments say."""
from support import BUILD, SOURCE, Process, check, free_port, main, run

EXAMPLES = BUILD / "examples"


def one_process_sums_over_all_devices():
    check("the sum is 15 everywhere: yes" in run(5, EXAMPLES / "01_one_process"), "01_one_process is wrong")


def threads_receive_every_broadcast():
    check("3 threads: 3 received" in run(3, EXAMPLES / "02_threads"), "02_threads is wrong")


def processes_meet_at_an_address_from_the_environment():
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(2, [EXAMPLES / "03_processes"], RANK=r, SIZE=3, NCCL_COMM_ID=address) for r in (2, 1, 0)]
    try:
        for process in ranks:
            check(process.wait(60) == 0, process.output())
        said = "".join(process.output() for process in ranks)
        for r in range(3):
            check(f"rank {r} of 3 received {(r + 2) % 3}" in said, said)
    finally:
        for process in ranks:
            process.close()


def training_ends_with_the_weights_of_one_process():
    said = run(4, EXAMPLES / "04_data_parallel_training", SOURCE / "examples/data/digits.csv", 4, 3)
    check("equal within 1e-5" in said and "epoch  3" in said, said)


if __name__ == "__main__":
    main(one_process_sums_over_all_devices, threads_receive_every_broadcast,
         processes_meet_at_an_address_from_the_environment, training_ends_with_the_weights_of_one_process)
