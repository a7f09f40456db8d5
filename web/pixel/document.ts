declare global {
  interface Document {
    /** true until a prerendered page is opened. */
    readonly prerendering?: boolean;
  }
}

/**
 * Reads a property of `document`. An image, form, frame or object of the page that has its name stands in its place
 * (https://html.spec.whatwg.org/multipage/dom.html#dom-document-nameditem); the browser's own is read then.
 */
export const readDocument = <Name extends 'currentScript' | 'prerendering' | 'visibilityState'>(
  name: Name,
): Document[Name] => {
  const value = document[name];
  return Object(value) === value ? Reflect.get(window.Document.prototype, name, document) : value;
};
