// Browsers start no Worker for a page that was opened as a file. A frame runs the search instead.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.tell(this, data);
      const script = inside.document.createElement("script");
      script.src = url;
      this.ready = new Promise((resolve) => (script.onload = resolve));
      this.postMessage = (data) => this.ready.then(() => this.tell(inside, data));
      inside.document.body.append(script);
    }
    tell(target, data) {
      target.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
