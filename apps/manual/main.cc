// SPDX-License-Identifier: Apache-2.0
// warpline_manual FOLDER VERSION DATE: writes the manual's pages and the shells' completions for `warpline`, made of
// the same declarations as its help, to FOLDER/man1, FOLDER/bash, FOLDER/zsh and FOLDER/fish.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "page.h"

namespace {

bool write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path);
  file << text;
  return file.flush().good();
}

}  // namespace

int main(int argc, char** argv) {
  namespace manual = warpline::manual;
  if (argc != 4) {
    std::fputs("usage: warpline_manual FOLDER VERSION DATE\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  bool good = write(folder / "man1" / "warpline.1", manual::program_man_page(argv[2], argv[3]));
  for (const manual::Page& page : manual::pages()) {
    good = write(folder / "man1" / (page.name() + ".1"), manual::man_page(page, argv[2], argv[3])) && good;
  }
  good = write(folder / "bash" / "warpline", manual::bash_completion()) && good;
  good = write(folder / "zsh" / "_warpline", manual::zsh_completion()) && good;
  good = write(folder / "fish" / "warpline.fish", manual::fish_completion()) && good;
  if (!good) std::perror("warpline_manual: cannot write");
  return good ? 0 : 3;
}
