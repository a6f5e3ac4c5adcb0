/** Owner signatures in the format of Safe 1.4.1. @see https://docs.safe.global/advanced/smart-account-signatures */
import { concat, encodeAbiParameters, numberToHex, pad, size, stringToHex } from 'viem'
import type { Address, Authorization, Hex } from '../../providers/chain/port.ts'

type PasskeyAuthorization = Extract<Authorization, { kind: 'passkey' }>

/**
 * Start of browsers' client data, before the challenge.
 * @see https://www.w3.org/TR/webauthn-3/#clientdatajson-serialization
 */
const CLIENT_DATA_HEAD = '{"type":"webauthn.get","challenge":"'

/** Text in the message that precedes the operation's hash. */
const MEMBER = '"operationHash":"0x'

/**
 * Encodes a passkey's assertion over a message that names an operation.
 * @returns undefined when a part is malformed.
 */
export function passkeySignature(
  signer: Address,
  operationHash: Hex,
  authorization: PasskeyAuthorization,
): Hex | undefined {
  const { message } = authorization
  const at = message.indexOf(`${MEMBER}${operationHash.slice(2)}`)
  const assertion = encodeAssertion(authorization)
  if (at < 0 || assertion === undefined) return undefined
  const [head, tail] = [message.slice(0, at + MEMBER.length), message.slice(at + MEMBER.length + 64)]
  const proof = encodeAbiParameters(
    [{ type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }],
    [stringToHex(head), stringToHex(tail), assertion],
  )
  // A contract signature: its address, the offset of its data (after these 65 bytes), and type 0; then the data.
  return concat([
    pad(signer, { size: 32 }),
    numberToHex(65, { size: 32 }),
    '0x00',
    numberToHex(size(proof), { size: 32 }),
    proof,
  ])
}

/** Encodes the assertion for Safe's passkey signer. */
function encodeAssertion({
  authenticatorData,
  clientDataJSON,
  signature,
}: PasskeyAuthorization): Hex | undefined {
  const client = Buffer.from(clientDataJSON, 'base64url').toString()
  // 43 characters of base64url are 32 bytes; the closing quote and a comma follow.
  const fieldsAt = CLIENT_DATA_HEAD.length + 43 + 2
  if (!client.startsWith(CLIENT_DATA_HEAD) || !client.endsWith('}')) return undefined
  if (client.slice(fieldsAt - 2, fieldsAt) !== '",') return undefined
  const numbers = parseDerSignature(Buffer.from(signature, 'base64url'))
  if (numbers === undefined) return undefined
  return encodeAbiParameters(
    [{ type: 'bytes' }, { type: 'string' }, { type: 'uint256' }, { type: 'uint256' }],
    [
      `0x${Buffer.from(authenticatorData, 'base64url').toString('hex')}`,
      client.slice(fieldsAt, -1),
      ...numbers,
    ],
  )
}

/** Parses r and s of an ECDSA signature in DER. @see https://www.rfc-editor.org/rfc/rfc3279#section-2.2.3 */
function parseDerSignature(der: Buffer): readonly [r: bigint, s: bigint] | undefined {
  const [sequence, length, rTag, rLength = 0] = der
  const sAt = 4 + rLength
  const [sTag, sLength = 0] = der.subarray(sAt)
  const isDer =
    sequence === 0x30 &&
    length === der.length - 2 &&
    rTag === 2 &&
    sTag === 2 &&
    sAt + 2 + sLength === der.length
  if (!isDer || rLength === 0 || rLength > 33 || sLength === 0 || sLength > 33) return undefined
  const numberAt = (start: number, end: number) => BigInt(`0x${der.subarray(start, end).toString('hex')}`)
  return [numberAt(4, sAt), numberAt(sAt + 2, der.length)]
}
