/**
 * Fixture answers of the suite in both eras: the names and texts are the suite's own. None of it is part of the
 * product.
 */

/** One red pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
/** A WAV file without samples. */
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=='

const image = { type: 'image' as const, data: png, mimeType: 'image/png' }
const text = (words: string) => ({ type: 'text' as const, text: words })
const resource = (uri: string, mimeType: string, words: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: words },
})

export const textResult = (words: string) => ({ content: [text(words)] })

/** Tools that answer immediately. */
export const plainTools = {
  test_simple_text: textResult('This is a simple text response for testing.'),
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: 'audio' as const, data: wav, mimeType: 'audio/wav' }] },
  test_embedded_resource: {
    content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  },
  test_multiple_content_types: {
    content: [
      text('Multiple content types test:'),
      image,
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  },
  test_error_handling: {
    content: [text('This tool intentionally returns an error for testing')],
    isError: true,
  },
  json_schema_2020_12_tool: textResult('The schema was kept.'),
}

/** The result of a tool that answers immediately. */
export function findPlainResult(name: string) {
  return Object.entries(plainTools).find(([known]) => known === name)?.[1]
}

const none = { type: 'object' as const, properties: {}, additionalProperties: false }
const withText = (name: string) => ({
  type: 'object' as const,
  properties: { [name]: { type: 'string' } },
  required: [name],
})

/** Every keyword that the suite expects to be preserved. */
const keywords = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

const schemas: Readonly<Record<string, { type: 'object'; [keyword: string]: unknown }>> = {
  json_schema_2020_12_tool: keywords,
  test_sampling: withText('prompt'),
  test_elicitation: withText('message'),
}

export function listTools(names: readonly string[]) {
  return names.map((name) => ({
    name,
    description: `The suite’s ${name}.`,
    inputSchema: schemas[name] ?? none,
  }))
}

export const resources = [
  {
    uri: 'test://static-text',
    name: 'Static Text Resource',
    description: 'A static text resource for testing.',
    mimeType: 'text/plain',
  },
  {
    uri: 'test://static-binary',
    name: 'Static Binary Resource',
    description: 'A static binary resource for testing.',
    mimeType: 'image/png',
  },
  {
    uri: 'test://watched-resource',
    name: 'Watched Resource',
    description: 'A resource that can be subscribed to.',
    mimeType: 'text/plain',
  },
]

export const templates = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'Resource Template',
    description: 'A resource with a parameter.',
    mimeType: 'application/json',
  },
]

/** The content of a resource; undefined for one outside the fixture. */
export function buildContent(uri: string) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id !== undefined) {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` }
    return { uri, mimeType: 'application/json', text: JSON.stringify(data) }
  }
  switch (uri) {
    case 'test://static-text':
      return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }
    case 'test://static-binary':
      return { uri, mimeType: 'image/png', blob: png }
    case 'test://watched-resource':
      return { uri, mimeType: 'text/plain', text: 'Watched resource content' }
    default:
      return undefined
  }
}

const argument = (name: string) => ({ name, description: `The suite’s ${name}.`, required: true })

export const prompts = [
  { name: 'test_simple_prompt', description: 'A simple prompt.', arguments: [] },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with required arguments.',
    arguments: [argument('arg1'), argument('arg2')],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt with a resource in it.',
    arguments: [argument('resourceUri')],
  },
  { name: 'test_prompt_with_image', description: 'A prompt with an image in it.', arguments: [] },
]

const userMessage = <Content>(content: Content) => ({ role: 'user' as const, content })

/** A prompt with its arguments filled in; undefined for one outside the fixture. */
export function buildPrompt(
  name: string,
  { arg1 = '', arg2 = '', resourceUri = '' }: Record<string, string>,
) {
  switch (name) {
    case 'test_simple_prompt':
      return { messages: [userMessage(text('This is a simple prompt for testing.'))] }
    case 'test_prompt_with_arguments':
      return { messages: [userMessage(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))] }
    case 'test_prompt_with_embedded_resource':
      return {
        messages: [
          userMessage(resource(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
          userMessage(text('Please process the embedded resource above.')),
        ],
      }
    case 'test_prompt_with_image':
      return { messages: [userMessage(image), userMessage(text('Please analyze the image above.'))] }
    default:
      return undefined
  }
}
