// Keeps shared libraries until the program ends. LeakSanitizer cannot name what Mesa's drivers leave behind once they
// are unloaded, and would take what their own variables point to as lost.
extern "C" int dlclose(void*);
extern "C" int dlclose(void*) { return 0; }
