// Confinement of a process that has opened what it needs: what a fault in code that reads what others
// wrote could still reach. Linux only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace vitrine {

struct Sandbox {
  int landlock_abi = 0;               // 0: this kernel has no landlock
  std::vector<std::string> readable;  // folders
};

// Confines all threads, those that run and those to come, for good:
// - no capabilities, no new privileges, no core dumps, no look into the memory from outside;
// - landlock: no file can be opened except, for reading, in the folders of `reread`; no TCP port can be
//   bound or connected to. A kernel without landlock leaves it at the next point;
// - seccomp: system calls that serving needs, by a list. Files are opened for reading only, and not at
//   all when `reread` is empty; memory never becomes executable; signals reach this process only. Other
//   calls fail with EPERM. Those that only an attack would make end the process with SIGSYS: running
//   a program, making a process or a socket, tracing, mounting, another architecture's numbers.
//
// `reread`: files that will be opened again. What replaces them has to be readable too, so their whole
// folders are, and the folders of the files that they are links to.
//
// An error: something could not be had, the process may be confined in part and should end. Takes a
// moment in which every thread gets a signal (SIGRTMIN + 1), which none may block.
Result<Sandbox> enter_sandbox(const std::vector<std::string>& reread);

// Makes all threads those of `user` and its groups. Refused unless this is root, and for root.
Status drop_privileges(const std::string& user);

}  // namespace vitrine
