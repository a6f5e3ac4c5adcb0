/**
 * Names of header fields that no purchase carries: of connections, of proxies, of payments and of this gateway. In lower case. The
 * published client, which imports nothing, has its own copy; a test compares both.
 */
export const WITHHELD_FIELD =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|host|content-length|expect|accept-encoding|authorization|forwarded|via|x-real-ip)$|^(proxy-|payment|x-payment|x-forwarded-|x-http-method|(x-)?bursar-)/
