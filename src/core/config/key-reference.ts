/**
 * References to keys outside of the process: the value of a key's variable names the place of the key instead of being it.
 * @see https://www.rfc-editor.org/rfc/rfc7512
 */

/** A key in a token. @property wrapped a secret that this key has encrypted, for variables of secrets. */
export interface KeyReference {
  readonly kind: 'pkcs11'
  /** Label of the token; null: the only token that has the key's names. */
  readonly token: string | null
  readonly serial: string | null
  /** Label of the key. */
  readonly object: string | null
  /** Identifier of the key, hex. */
  readonly id: string | null
  /** base64url. */
  readonly wrapped: string | null
}

const SCHEME = 'pkcs11:'

/** True for a value that names a place; any other value is the key itself. */
export function isKeyReference(text: string): boolean {
  return text.startsWith(SCHEME)
}

/** @throws Error with what is wrong; never with a wrapped secret. */
export function parseKeyReference(text: string): KeyReference {
  if (!isKeyReference(text)) throw new Error('must begin with pkcs11:')
  const [path = '', query = '', ...rest] = text.slice(SCHEME.length).split('?')
  if (rest.length > 0) throw new Error('has more than one "?"')
  const names = readAttributes(path, ';', ['token', 'serial', 'object', 'id', 'type'])
  const { wrapped = null } = readAttributes(query, '&', ['wrapped'])
  const { token = null, serial = null, object = null, id: bytes } = names
  if (object === null && bytes === undefined)
    throw new Error('names no key: object=LABEL or id=%01 is missing')
  if (token === null && serial === null)
    throw new Error('names no token: token=LABEL or serial=NUMBER is missing')
  if (wrapped !== null && !/^[A-Za-z0-9_-]{40,4096}$/.test(wrapped))
    throw new Error('has a wrapped secret that is not base64url; bursar keys wrap makes it')
  const id = bytes === undefined ? null : Buffer.from(bytes, 'latin1').toString('hex')
  return { kind: 'pkcs11', token, serial, object, id, wrapped }
}

/** The place in words for people, without a secret. */
export function describeKeyReference({ token, serial, object, id }: KeyReference): string {
  const of = token === null ? `token with serial ${serial}` : `token "${token}"`
  return `${object === null ? `key ${id}` : `key "${object}"`} in PKCS#11 ${of}`
}

function readAttributes(
  text: string,
  separator: string,
  known: readonly string[],
): Readonly<Record<string, string>> {
  const read: Record<string, string> = {}
  for (const attribute of text.split(separator).filter((one) => one !== '')) {
    const [, name = '', value = ''] = /^([a-z-]+)=(.*)$/.exec(attribute) ?? []
    // The PIN and the module have variables of their own: a reference is shown in reports.
    if (!known.includes(name))
      throw new Error(
        /^(pin|module)-/.test(name)
          ? `states ${name}; use PKCS11_PIN_FILE and PKCS11_MODULE instead`
          : `has an unknown attribute; known are ${known.join(', ')}`,
      )
    if (read[name] !== undefined) throw new Error(`states ${name} twice`)
    read[name] = decode(name, value)
  }
  return read
}

/** Each character of an id is a byte; labels are UTF-8. */
function decode(name: string, value: string): string {
  if (name === 'id')
    return value.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  try {
    return decodeURIComponent(value)
  } catch {
    throw new Error(`has a ${name} that is not percent-encoded UTF-8`)
  }
}
