/**
 * Writes X.509 certificates of P-256 keys. Node signs, but cannot issue certificates; of DER it takes the few forms below,
 * where a library would load twenty packages into a process that has to stay small.
 * @see https://www.rfc-editor.org/rfc/rfc5280
 */
import { createECDH, createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { random } from '../../core/base/random.ts'

/** A new P-256 key. */
export function newCertificateKey(): KeyObject {
  const curve = createECDH('prime256v1')
  const d = random.bytes(32)
  curve.setPrivateKey(d)
  const point = curve.getPublicKey()
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
  return createPrivateKey({
    format: 'jwk',
    key: { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '', d: d.toString('base64url') },
  })
}

/** @property authority key and name of the issuer. @property host null: the certificate is an authority's. */
export interface CertificateTerms {
  readonly key: KeyObject
  readonly name: string
  readonly host: string | null
  readonly authority: { readonly key: KeyObject; readonly name: string }
  readonly notBefore: Date
  readonly notAfter: Date
}

/** @returns the certificate as PEM. */
export function writeCertificate({
  key,
  name,
  host,
  authority,
  notBefore,
  notAfter,
}: CertificateTerms): string {
  const publicKey = exportPublic(key)
  const extensions = [
    extension(OID.basicConstraints, true, sequence(...(host === null ? [TRUE, integer(Buffer.of(0))] : []))),
    // The first bits: digitalSignature; keyCertSign and cRLSign.
    extension(OID.keyUsage, true, host === null ? bits(Buffer.of(0x06), 1) : bits(Buffer.of(0x80), 7)),
    extension(OID.subjectKey, false, tagged(0x04, keyIdentifier(publicKey))),
    extension(OID.authorityKey, false, sequence(tagged(0x80, keyIdentifier(exportPublic(authority.key))))),
    ...(host === null
      ? []
      : [
          extension(OID.extendedUsage, false, sequence(OID.serverAuth)),
          extension(OID.alternativeName, false, sequence(writeHost(host))),
        ]),
  ]
  const body = sequence(
    tagged(0xa0, integer(Buffer.of(2))),
    integer(Buffer.concat([Buffer.of(1), random.bytes(15)])),
    ECDSA_SHA256,
    writeName(authority.name),
    sequence(writeTime(notBefore), writeTime(notAfter)),
    writeName(name),
    publicKey,
    tagged(0xa3, sequence(...extensions)),
  )
  const certificate = sequence(body, ECDSA_SHA256, bits(sign('sha256', body, authority.key), 0))
  const lines = certificate.toString('base64').replaceAll(/.{64}(?!$)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

function exportPublic(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' })
}

/** SHA-1 of the key's point, which ends its DER: 65 bytes for P-256. */
function keyIdentifier(publicKey: Buffer): Buffer {
  return createHash('sha1').update(publicKey.subarray(-65)).digest()
}

function writeName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(OID.commonName, tagged(0x0c, Buffer.from(name)))))
}

/** Two digits of the year up to 2049. */
function writeTime(at: Date): Buffer {
  const digits = `${at.toISOString().replaceAll(/[-:T]|\.\d+/g, '')}`
  return at.getUTCFullYear() < 2050
    ? tagged(0x17, Buffer.from(digits.slice(2)))
    : tagged(0x18, Buffer.from(digits))
}

function writeHost(host: string): Buffer {
  if (isIP(host) === 0) return tagged(0x82, Buffer.from(host))
  return tagged(0x87, isIP(host) === 4 ? Buffer.from(host.split('.').map(Number)) : writeAddress6(host))
}

function writeAddress6(address: string): Buffer {
  // A URL writes an address in its normal form, without embedded IPv4.
  const [start = '', end] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (part: string) => (part === '' ? [] : part.split(':'))
  const [first, last] = [groups(start), groups(end ?? '')]
  const zeros = Array.from({ length: end === undefined ? 0 : 8 - first.length - last.length }, () => '0')
  return Buffer.from([...first, ...zeros, ...last].map((group) => group.padStart(4, '0')).join(''), 'hex')
}

function extension(id: Buffer, isCritical: boolean, value: Buffer): Buffer {
  return sequence(id, ...(isCritical ? [TRUE] : []), tagged(0x04, value))
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

/** A positive number. @param bytes without leading zeros, the first below 0x80. */
function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes)
}

function bits(bytes: Buffer, unused: number): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.of(unused), bytes]))
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content])
  const size = length < 0x100 ? Buffer.of(0x81, length) : Buffer.of(0x82, length >> 8, length & 0xff)
  return Buffer.concat([Buffer.of(tag), size, content])
}

const id = (hex: string) => tagged(0x06, Buffer.from(hex, 'hex'))

const TRUE = tagged(0x01, Buffer.of(0xff))
const OID = {
  commonName: id('550403'),
  subjectKey: id('551d0e'),
  keyUsage: id('551d0f'),
  alternativeName: id('551d11'),
  basicConstraints: id('551d13'),
  authorityKey: id('551d23'),
  extendedUsage: id('551d25'),
  serverAuth: id('2b06010505070301'),
}
const ECDSA_SHA256 = sequence(id('2a8648ce3d040302'))
