// A display of its own (Xvfb), the real program on it, and a person's hands: xdotool.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/figure/color.h"
#include "core/figure/text.h"
#include "tests/cli/process.h"

namespace qkv::test {

// Whether `happened` becomes true within `seconds`, asked every 20 ms.
bool wait_until(const std::function<bool()>& happened, double seconds = 20);

// A virtual display without a window manager: windows lie at its upper left corner.
class Desktop {
 public:
  explicit Desktop(int width = 1600, int height = 1000);

  // Empty once the display is up; else why it is not ("Xvfb is not installed").
  const std::string& problem() const { return problem_; }
  Environment environment() const;  // DISPLAY and a home of its own
  std::string config_folder() const { return folder_ / "config"; }
  std::string folder() const { return folder_.path().string(); }

  // What the screen shows now, opaque RGBA.
  PixelImage screen() const;
  // What xdotool prints. Fails the test where it fails.
  std::string xdotool(std::vector<std::string> words) const;
  // Makes keys for what is typed. Fails the test where the keyboard has no room.
  void give_keys(const std::string& text) const;

 private:
  TempFolder folder_;
  std::unique_ptr<Process> server_;
  std::string display_, problem_;
};

Color pixel(const PixelImage& image, int x, int y);
int count_colors(const PixelImage& image, int at_most = 1000);

// A widget's rectangle in pixels of the window.
struct Place {
  double x = 0, y = 0, width = 0, height = 0;
  double middle_x() const { return x + width / 2; }
  double middle_y() const { return y + height / 2; }
};
using Places = std::map<std::string, Place>;

// The places of the widgets of a window of that size that shows `file`: from `qkvlab screenshot --layout`.
Places find_places(const std::string& file, int width, int height, const std::vector<std::string>& more_words = {});

// The program in a window.
class Window {
 public:
  // Starts `qkvlab words…` and waits until its window is there, has the keyboard and stands still.
  Window(Desktop& desktop, const std::vector<std::string>& words);

  bool opened() const { return !id_.empty(); }
  bool running() { return process_.running(); }
  std::string title() const;
  std::string err() const { return process_.err(); }
  // Processor time that the program has used, all threads.
  double processor_seconds() const;
  // Waits for the program to end by itself.
  Finished wait(double seconds = 20) { return process_.wait(seconds); }
  // Meanwhile the program gets no processor time, as on a machine under heavy load.
  void while_stopped(const std::function<void()>& act);

  void resize(int width, int height);
  void move_to(double x, double y);
  void click(double x, double y, int button = 1);
  void click(const Place& place) { click(place.middle_x(), place.middle_y()); }
  void double_click(const Place& place);
  void drag(double from_x, double from_y, double to_x, double to_y);
  void key(const std::string& name);   // "ctrl+q", "Return", "Tab"
  void type(const std::string& text);  // any script

  // The screen once it has been the same for `seconds`; fails the test where it never is.
  PixelImage settled(double seconds = 0.25);

 private:
  Desktop& desktop_;
  Process process_;
  std::string id_;
};

}  // namespace qkv::test
