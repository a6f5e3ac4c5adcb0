/**
 * References to keys outside of the process: the value of a key's variable names the place of the key instead of being it.
 * @see https://www.rfc-editor.org/rfc/rfc7512 for tokens; keys of clouds have the names that their vendors give them
 */

/** @property wrapped base64url; a secret that this key has encrypted. @property address that a key of chains must have. */
interface Expectation {
  readonly wrapped: string | null
  readonly address: string | null
}

/** A key in a token. */
export interface TokenReference extends Expectation {
  readonly kind: 'pkcs11'
  /** Label of the token; null: the only token that has the key's names. */
  readonly token: string | null
  readonly serial: string | null
  /** Label of the key. */
  readonly object: string | null
  /** Identifier of the key, hex. */
  readonly id: string | null
}

export interface AwsReference extends Expectation {
  readonly kind: 'aws-kms'
  readonly arn: string
  /** Of the ARN, such as `aws-cn`. */
  readonly partition: string
  readonly region: string
}

export interface GoogleReference extends Expectation {
  readonly kind: 'gcp-kms'
  /** Resource name up to the key. */
  readonly key: string
  /** Number of its version; null: the primary one. */
  readonly version: string | null
}

export type KeyReference = TokenReference | AwsReference | GoogleReference

const schemes = { pkcs11: 'pkcs11:', 'aws-kms': 'aws-kms://', 'gcp-kms': 'gcp-kms://' } as const

/** For messages. */
export const REFERENCE_FORMS = 'pkcs11:…, aws-kms://… or gcp-kms://…'

/** True for a value that names a place; any other value is the key itself. */
export function isKeyReference(text: string): boolean {
  return Object.values(schemes).some((scheme) => text.startsWith(scheme))
}

/** @throws Error with what is wrong; never with a wrapped secret. */
export function parseKeyReference(text: string): KeyReference {
  const scheme = Object.values(schemes).find((one) => text.startsWith(one))
  if (scheme === undefined) throw new Error(`must begin with ${REFERENCE_FORMS}`)
  const [path = '', query = '', ...rest] = text.slice(scheme.length).split('?')
  if (rest.length > 0) throw new Error('has more than one "?"')
  const { wrapped = null, address = null } = readAttributes(query, '&', ['wrapped', 'address'])
  if (wrapped !== null && !/^[A-Za-z0-9_-]{40,4096}$/.test(wrapped))
    throw new Error('has a wrapped secret that is not base64url; bursar keys wrap makes it')
  if (address !== null && !/^0x[0-9a-fA-F]{40}$/.test(address))
    throw new Error('has an address that is not 0x and 40 hex digits')
  const expectation = { wrapped, address }
  if (scheme === schemes.pkcs11) return { ...readToken(path), ...expectation }
  return { ...(scheme === schemes['aws-kms'] ? readAws(path) : readGoogle(path)), ...expectation }
}

function readToken(path: string): Omit<TokenReference, keyof Expectation> {
  const names = readAttributes(path, ';', ['token', 'serial', 'object', 'id', 'type'])
  const { token = null, serial = null, object = null, id: bytes } = names
  if (object === null && bytes === undefined)
    throw new Error('names no key: object=LABEL or id=%01 is missing')
  if (token === null && serial === null)
    throw new Error('names no token: token=LABEL or serial=NUMBER is missing')
  const id = bytes === undefined ? null : Buffer.from(bytes, 'latin1').toString('hex')
  return { kind: 'pkcs11', token, serial, object, id }
}

/** @see https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html#key-id-key-ARN */
function readAws(arn: string): Omit<AwsReference, keyof Expectation> {
  if (/:alias\//.test(arn))
    throw new Error('names an alias, which may be moved to another key; name the key by its ARN')
  const [, partition, region] =
    /^arn:(aws(?:-[a-z-]+)?):kms:([a-z]{2}(?:-[a-z]+)+-\d):\d{12}:key\/[A-Za-z0-9-]{1,64}$/.exec(arn) ?? []
  if (partition === undefined || region === undefined)
    throw new Error('names no key: aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID is its form')
  return { kind: 'aws-kms', arn, partition, region }
}

/** @see https://cloud.google.com/kms/docs/getting-resource-ids */
function readGoogle(path: string): Omit<GoogleReference, keyof Expectation> {
  const [, key, version = null] =
    /^(projects\/[a-z0-9:.-]+\/locations\/[a-z0-9-]+\/keyRings\/[\w-]{1,63}\/cryptoKeys\/[\w-]{1,63})(?:\/cryptoKeyVersions\/([1-9]\d{0,9}))?$/.exec(
      path,
    ) ?? []
  if (key === undefined)
    throw new Error(
      'names no key: gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K is its form, with /cryptoKeyVersions/N for one that signs',
    )
  return { kind: 'gcp-kms', key, version }
}

/** The place in words for people, without a secret. */
export function describeKeyReference(reference: KeyReference): string {
  switch (reference.kind) {
    case 'pkcs11': {
      const { token, serial, object, id } = reference
      const of = token === null ? `token with serial ${serial}` : `token "${token}"`
      return `${object === null ? `key ${id}` : `key "${object}"`} in PKCS#11 ${of}`
    }
    case 'aws-kms':
      return `key ${reference.arn} in AWS KMS`
    case 'gcp-kms': {
      const { key, version } = reference
      return `key ${key}${version === null ? '' : ` (version ${version})`} in Google Cloud KMS`
    }
  }
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
