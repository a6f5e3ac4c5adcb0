/** Checks JSON Schemas against the meta-schema of their dialect. @see https://json-schema.org/draft/2020-12/schema */
import { Ajv2020 } from 'ajv/dist/2020.js'

const ajv = new Ajv2020({ strict: false })

/** Lists what is wrong with a schema; empty if it is valid. */
export function schemaErrors(schema: object): readonly string[] {
  if (ajv.validateSchema(schema) === true) return []
  return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}
