/** Where the API is: above this page, whatever the prefix. */
export const API = new URL("../", document.baseURI).href;
