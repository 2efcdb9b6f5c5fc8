// The program behind the window: session, history, engine and panels, one ImGui frame at a time.
// Knows neither GLFW nor OpenGL; a host (window, offscreen, test) feeds it and renders its draw data.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/heatmap_draw.h"
#include "app/ui/image_store.h"
#include "app/ui/preferences.h"
#include "app/ui/widget_registry.h"
#include "core/attention/forward.h"
#include "core/session/action.h"

namespace qkv {

struct BegunFile;
struct LensResult;

// What the host lends to the program; all of it must outlive the App.
struct AppServices {
  ImageStore* images = nullptr;             // required
  HeatmapSink* heatmaps = nullptr;          // nullptr: heat maps are laid out but not drawn
  std::function<void()> wake;               // called from any thread: a new frame is wanted
  double most_held_bytes = kMostHeldBytes;  // of N² matrices; larger ones are streamed
};

// An ImGui context must be current from construction to destruction.
class App {
 public:
  App(AppServices services, Preferences preferences);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Starts with `session`; `path` is where Save writes, empty for an example or imported tensors.
  void open(Session session, std::filesystem::path path);
  // Opens a file as the menu would: errors become a message in the window, unsaved work is asked about.
  void open_file(const std::filesystem::path& path);
  // Goes on with a file whose reading has begun: at once where it has ended, else behind a dialog.
  void open_file(BegunFile file);
  // Compares with a file and shows it on a tab of its own.
  void compare_with(const std::filesystem::path& path);
  // Edits the session at the end of the next frame, as what a panel emits.
  void push(Action action);

  // Before ImGui::NewFrame: loads glyphs that the last frame missed, for `scale` device pixels per logical pixel.
  // True if the font atlas was rebuilt, so that its texture must be uploaded again.
  bool prepare_fonts(float scale);
  // Between ImGui::NewFrame and ImGui::Render. Logical pixels: io.DisplaySize is the window's size / scale.
  void frame();
  // A typed character of any plane (ImGui's own queue holds 16 bits); before the frame that shall see it.
  void type_character(char32_t character);

  // Whether another frame is due without any event (a toast fading, a caret blinking: then within `seconds`).
  bool wants_frame_now() const;
  double seconds_to_next_frame() const;  // infinity when nothing changes by itself

  void request_close();  // the window's close button: asks about unsaved work first
  bool should_quit() const;
  std::string window_title() const;

  // A picture of the window that the person asked for: the host reads the rendered pixels back and delivers them.
  bool screenshot_wanted() const;
  void deliver_screenshot(const PixelImage& straight_rgba);

  // Blocks until the newest edit is computed and its trace is shown by the next frame.
  void wait_for_results();

  Preferences& preferences();             // the host keeps the window's size in it
  const WidgetRegistry& widgets() const;  // rectangles of the last frame, for tests
  const Session& session() const;
  std::shared_ptr<const Trace> trace() const;
  std::shared_ptr<const LensResult> lens() const;  // what the cells show in place of values; null = values
  // Background of the window outside ImGui's own drawing.
  Color clear_color() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
